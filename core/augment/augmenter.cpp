#include "core/augment/augmenter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>
#include <utility>

#include "core/base/error.h"

namespace pmaptrain::augment {

namespace {

// Whether targets have something for each pixel.
bool is_of_pixels(const Field& target, const Field& input) {
  const Shape& shape = target.shape;
  return (shape.size() == 2 || shape.size() == 3) && std::equal(shape.begin(), shape.begin() + 2, input.shape.begin());
}

// Why what targets have for pixels cannot move with them.
Misfit misfit_of_targets(const Augmentation& one, const Field& input, const Field& target, bool has_ignored) {
  const std::string& name = one.kind->name();
  const bool are_labels = target.dtype == DType::i32;
  if (!one.kind->moves() || target.shape.size() < 2) return {};
  if (!is_of_pixels(target, input)) {
    return {fmt::format("{} moves pixels of images {}, but what the targets {} say of pixels cannot move with them",
                        name, to_string(input.shape), to_string(target.shape)),
            "remove it, or save targets of the size of the images"};
  }
  if (!one.kind->fills() || (are_labels && has_ignored)) return {};
  const std::string others = "random_flip and random_resized_crop take no pixels from outside";
  if (!are_labels) {
    return {fmt::format("{} takes pixels from outside of the image, for which the targets have no value", name),
            "remove it; " + others};
  }
  return {
      fmt::format("{} takes pixels from outside of the image, which have no label", name),
      "write loss: {softmax_cross_entropy: {ignore_label: 255}}, with a number that is no class: it is the label of "
      "such pixels, which then do not count; " +
          others};
}

}  // namespace

void check_augment(const std::vector<Augmentation>& augment, const Field& input, const Field& target,
                   std::optional<std::int64_t> ignored) {
  std::vector<Diagnostic> errors;
  for (const Augmentation& one : augment) {
    const std::string& name = one.kind->name();
    if (input.dtype != DType::u8 || input.shape.size() != 3) {
      errors.push_back({"config",
                        one.place,
                        fmt::format("{} changes 8-bit images [height, width, channels]; the inputs are {}{}", name,
                                    to_string(input.dtype), to_string(input.shape)),
                        "remove it; arrays of images in idx and npz files are to be uint8",
                        {}});
      continue;
    }
    if (Misfit misfit = misfit_of_targets(one, input, target, ignored.has_value()); !misfit.why.empty()) {
      errors.push_back({"config", one.place, std::move(misfit.why), std::move(misfit.help), {}});
      continue;
    }
    if (const Misfit misfit = one.kind->misfit(input.shape); !misfit.why.empty()) {
      errors.push_back({"config", one.place, fmt::format("{}: {}", name, misfit.why), misfit.help, {}});
    }
    if (&one == mixing_augmentation(augment) && &one != &augment.back()) {
      errors.push_back({"config",
                        one.place,
                        fmt::format("{} is not the last of the list: it mixes images that all other changes have been "
                                    "made to",
                                    name),
                        mixing_augmentation(std::span(&one + 1, &augment.back() + 1)) != nullptr
                            ? "one of mixup and cutmix is used, not both"
                            : fmt::format("move {} to the end", name),
                        {}});
    }
  }
  if (!errors.empty()) throw Error(ExitStatus::usage, std::move(errors));
}

Augmenter::Augmenter(const std::vector<Augmentation>& augment, const Field& input, std::uint64_t seed,
                     const Field& target, std::optional<std::int64_t> ignored) {
  if (augment.empty()) return;
  size_ = {input.shape[0], input.shape[1]};
  channels_ = input.shape[2];
  for (std::size_t i = 0; i < augment.size(); ++i) {
    const AugmentationKind& kind = augment[i].kind;
    operations_.push_back({kind, stream_key(seed, fmt::format("data/augment/{}/{}", i, kind->name()))});
  }
  if (!is_of_pixels(target, input)) return;
  target_bytes_ = static_cast<std::int64_t>(target.bytes()) / (size_.height * size_.width);
  if (target.dtype != DType::i32 || !ignored) return;
  const auto label = static_cast<std::int32_t>(*ignored);
  for (std::size_t at = 0; at < static_cast<std::size_t>(target_bytes_); at += sizeof label) {
    outside_.resize(at + sizeof label);
    std::memcpy(outside_.data() + at, &label, sizeof label);
  }
}

void Augmenter::apply(std::int64_t position, std::byte* image, std::byte* target) const {
  const Pixels pixels{{image, static_cast<std::size_t>(size_.height * size_.width * channels_)}, size_, channels_};
  for (const Operation& operation : operations_) {
    operation.kind->change(pixels, Draws(operation.key, static_cast<std::uint64_t>(position)));
  }
  if (target_bytes_ == 0) return;
  const Pixels targets{
      {target, static_cast<std::size_t>(size_.height * size_.width * target_bytes_)}, size_, target_bytes_, outside_};
  for (const Operation& operation : operations_) {
    operation.kind->change_targets(targets, Draws(operation.key, static_cast<std::uint64_t>(position)));
  }
}

const Augmentation* mixing_augmentation(std::span<const Augmentation> augment) {
  for (const Augmentation& one : augment) {
    if (one.kind->mixes()) return &one;
  }
  return nullptr;
}

Mixer::Mixer(const std::vector<Augmentation>& augment, const Field& input, std::uint64_t seed) {
  const Augmentation* const mixing = mixing_augmentation(augment);
  if (mixing == nullptr) return;
  kind_ = mixing->kind;
  key_ = stream_key(seed, "data/augment/" + kind_->name());
  size_ = {input.shape[0], input.shape[1]};
  channels_ = input.shape[2];
}

Mix Mixer::draw(std::int64_t step) const { return kind_->mix(size_, Draws(key_, static_cast<std::uint64_t>(step))); }

void Mixer::mix_image(const Mix& mix, std::byte* image, const std::byte* partner) const {
  if (mix.box) {
    for (std::int64_t y = 0; y < mix.box->size.height; ++y) {
      const std::int64_t at = ((mix.box->top + y) * size_.width + mix.box->left) * channels_;
      std::memcpy(image + at, partner + at, static_cast<std::size_t>(mix.box->size.width * channels_));
    }
    return;
  }
  const std::int64_t bytes = size_.height * size_.width * channels_;
  const std::uint32_t own = mix.share, other = Mix::whole - mix.share;
  for (std::int64_t i = 0; i < bytes; ++i) {
    const std::uint32_t sum = std::to_integer<std::uint32_t>(image[i]) * own +
                              std::to_integer<std::uint32_t>(partner[i]) * other + Mix::whole / 2;
    image[i] = static_cast<std::byte>(sum / Mix::whole);
  }
}

void Mixer::mix_target(const Mix& mix, std::span<float> target, std::span<const float> partner) {
  assert(target.size() == partner.size());
  const float own = static_cast<float>(mix.share) / Mix::whole, other = 1 - own;
  for (std::size_t i = 0; i < target.size(); ++i) target[i] = own * target[i] + other * partner[i];
}

}  // namespace pmaptrain::augment
