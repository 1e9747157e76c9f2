#include "core/data/images/mix.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <numbers>
#include <string>
#include <utility>
#include <variant>

#include "core/data/images/augment_draws.h"

namespace pmaptrain::data {
namespace {

// The words of one place in a stream, one after another.
class WordStream {
 public:
  explicit WordStream(const Draws& draws) : draws_(draws) {}
  std::uint32_t next() {
    if (used_ % 4 == 0) words_ = draws_.words(used_ / 4);
    return words_[used_++ % 4];
  }
  // In (0, 1).
  double uniform() { return (static_cast<double>(next()) + 0.5) / 4294967296.0; }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  const Draws& draws_;
  Words words_ = {};
  std::uint32_t used_ = 0;
};

// The logarithm of a draw from Gamma(alpha, 1): by Marsaglia and Tsang (2000) for alpha + 1, times u^(1 / alpha). The
// draw itself would be 0 for a small alpha.
double log_gamma_draw(double alpha, WordStream& words) {
  const double d = alpha + 1 - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  const double power = std::log(words.uniform()) / alpha;
  while (true) {
    const double x = words.normal(), u = words.uniform();
    const double cube = std::pow(1 + c * x, 3);
    if (cube > 0 && std::log(u) < x * x / 2 + d - d * cube + d * std::log(cube)) return std::log(d * cube) + power;
  }
}

// From Beta(alpha, alpha), for which a draw is g / (g + h) with two draws of Gamma(alpha, 1).
double draw_beta(double alpha, WordStream& words) {
  const double g = log_gamma_draw(alpha, words), h = log_gamma_draw(alpha, words);
  return 1 / (1 + std::exp(h - g));
}

std::uint32_t as_share(double share) { return static_cast<std::uint32_t>(std::lround(share * Mix::whole)); }

Mix draw_mix(const spec::augment::Mixup& mixup, ImageSize /*size*/, const Draws& draws) {
  WordStream words(draws);
  return {as_share(draw_beta(mixup.alpha, words)), std::nullopt};
}

// The box has the share 1 - lambda of the area, with lambda from Beta(alpha, alpha), and its centre is a pixel of the
// image. Where a part of it lies outside, less is cut, and the share is that of what is cut.
Mix draw_mix(const spec::augment::Cutmix& cutmix, ImageSize size, const Draws& draws) {
  WordStream words(draws);
  const double side = std::sqrt(1 - draw_beta(cutmix.alpha, words));
  const auto range = [&](std::int64_t all) {
    const auto length = static_cast<std::int64_t>(side * static_cast<double>(all));
    const std::int64_t begin = below(words.next(), all) - length / 2;
    const std::int64_t first = std::max<std::int64_t>(begin, 0);
    return std::pair(first, std::max<std::int64_t>(std::min(begin + length, all) - first, 0));
  };
  const auto [top, height] = range(size.height);
  const auto [left, width] = range(size.width);
  const double cut = static_cast<double>(height * width) / static_cast<double>(size.height * size.width);
  return {as_share(1 - cut), Box{top, left, {height, width}}};
}

template <class Kind>
constexpr bool mixes_pairs = requires(const Kind& kind, const Draws& draws) {
  draw_mix(kind, ImageSize(), draws);
};

class OneHot final : public Dataset {
 public:
  OneHot(std::shared_ptr<const Dataset> labelled, std::int64_t classes)
      : labelled_(std::move(labelled)), classes_(classes) {}

  std::int64_t size() const override { return labelled_->size(); }
  Field input() const override { return labelled_->input(); }
  Field target() const override { return {DType::f32, {classes_}, labelled_->target().origin}; }
  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    std::int32_t label = 0;
    labelled_->read(index, input, reinterpret_cast<std::byte*>(&label));
    auto* const probabilities = reinterpret_cast<float*>(target);
    std::fill_n(probabilities, classes_, 0.0F);
    if (label >= 0 && label < classes_) probabilities[label] = 1;
  }
  bool is_costly() const override { return labelled_->is_costly(); }
  bool is_weighted() const override { return labelled_->is_weighted(); }
  float weight(std::int64_t index) const override { return labelled_->weight(index); }
  std::int64_t index_in_source(std::int64_t index) const override { return labelled_->index_in_source(index); }
  std::string file_of(std::int64_t index) const override { return labelled_->file_of(index); }
  std::string line_of(std::int64_t index) const override { return labelled_->line_of(index); }
  void check_intact() const override { labelled_->check_intact(); }
  void check_unchanged() const override { labelled_->check_unchanged(); }

 private:
  std::shared_ptr<const Dataset> labelled_;
  std::int64_t classes_;
};

}  // namespace

const spec::Augmentation* mixing_augmentation(std::span<const spec::Augmentation> augment) {
  for (const spec::Augmentation& one : augment) {
    const bool mixes = std::visit([]<class Kind>(const Kind&) { return mixes_pairs<Kind>; }, one.kind);
    if (mixes) return &one;
  }
  return nullptr;
}

Mixer::Mixer(const std::vector<spec::Augmentation>& augment, const Field& input, std::uint64_t seed) {
  const spec::Augmentation* const mixing = mixing_augmentation(augment);
  if (mixing == nullptr) return;
  kind_ = mixing->kind;
  key_ = stream_key(seed, "data/augment/" + spec::to_string(mixing->kind));
  size_ = {input.shape[0], input.shape[1]};
  channels_ = input.shape[2];
}

Mix Mixer::draw(std::int64_t step) const {
  const Draws draws(key_, static_cast<std::uint64_t>(step));
  return std::visit(
      [&]<class Kind>(const Kind& kind) -> Mix {
        if constexpr (mixes_pairs<Kind>) return draw_mix(kind, size_, draws);
        return {};
      },
      *kind_);
}

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

std::shared_ptr<const Dataset> one_hot_labels(std::shared_ptr<const Dataset> labelled, std::int64_t classes) {
  return std::make_shared<OneHot>(std::move(labelled), classes);
}

}  // namespace pmaptrain::data
