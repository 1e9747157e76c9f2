#include "core/data/images/augment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "core/base/error.h"
#include "core/data/images/augment_draws.h"
#include "core/data/images/color.h"
#include "core/data/images/mix.h"
#include "core/data/images/resize.h"
#include "core/data/images/rotate.h"

namespace pmaptrain::data {
namespace {

// Mirrors a row of `width` pixels. The number of channels is known when it is compiled, so that pixels are moved as a
// whole.
template <std::size_t channels>
void mirror_row(std::byte* row, std::int64_t width) {
  struct Pixel {
    std::array<std::byte, channels> bytes;
  };
  auto* const pixels = reinterpret_cast<Pixel*>(row);
  std::reverse(pixels, pixels + width);
}

struct Change {
  std::byte* image;
  std::int64_t height, width, channels;
  const Draws& draws;

  ImageSize size() const { return {height, width}; }
  std::span<std::byte> bytes() const { return {image, static_cast<std::size_t>(height * width * channels)}; }
  std::byte* row(std::int64_t y) const { return image + y * width * channels; }

  // Row y of the result is row y + down of the image, moved left by `right` pixels, with zeros for what is outside. The
  // order of rows is such that none is overwritten before it is read.
  void operator()(const spec::augment::RandomCrop& crop) const {
    const Words words = draws.words();
    const std::int64_t down = below(words[0], 2 * crop.padding + 1) - crop.padding;
    const std::int64_t right = below(words[1], 2 * crop.padding + 1) - crop.padding;
    const auto bytes = static_cast<std::size_t>(width * channels);
    const auto outside = static_cast<std::size_t>(std::abs(right) * channels), inside = bytes - outside;
    for (std::int64_t i = 0; i < height; ++i) {
      const std::int64_t y = down >= 0 ? i : height - 1 - i;
      std::byte* const to = row(y);
      if (y + down < 0 || y + down >= height) {
        std::memset(to, 0, bytes);
      } else if (right >= 0) {
        std::memmove(to, row(y + down) + outside, inside);
        std::memset(to + inside, 0, outside);
      } else {
        std::memmove(to + outside, row(y + down), inside);
        std::memset(to, 0, outside);
      }
    }
  }

  void operator()(const spec::augment::RandomResizedCrop& crop) const {
    enlarge_part(bytes(), size(), draw_part(crop, size(), draws), channels);
  }

  void operator()(const spec::augment::RandomFlip&) const {
    if (draws.words()[0] >> 31 == 0) return;
    for (std::int64_t y = 0; y < height; ++y) {
      switch (channels) {
        case 1: mirror_row<1>(row(y), width); break;
        case 3: mirror_row<3>(row(y), width); break;
        case 4: mirror_row<4>(row(y), width); break;
        default: mirror_any(row(y));
      }
    }
  }

  void mirror_any(std::byte* row) const {
    for (std::int64_t left = 0, right = width - 1; left < right; ++left, --right) {
      std::swap_ranges(row + left * channels, row + (left + 1) * channels, row + right * channels);
    }
  }

  void operator()(const spec::augment::RandomRotation& rotation) const {
    const std::vector<std::byte> from(image, image + bytes().size());
    rotate_image(from, size(), channels, draw_angle(rotation, draws), bytes());
  }

  void operator()(const spec::augment::ColorJitter& jitter) const {
    const ColorChange change = draw_color_change(jitter, draws);
    for (const ColorStep step : change.order) {
      const std::optional<double> amount = change.amount(step);
      if (!amount) continue;
      switch (step) {
        case ColorStep::brightness: change_brightness(bytes(), *amount); break;
        case ColorStep::contrast: change_contrast(bytes(), channels, *amount); break;
        case ColorStep::saturation: change_saturation(bytes(), *amount); break;
        case ColorStep::hue: shift_hue(bytes(), *amount); break;
      }
    }
  }

  // Batches are mixed (mix.h), not images by themselves.
  void operator()(const spec::augment::Mixup&) const {}
  void operator()(const spec::augment::Cutmix&) const {}

  // The centre is a pixel of the image, as in https://arxiv.org/abs/1708.04552.
  void operator()(const spec::augment::Cutout& cutout) const {
    const Words words = draws.words();
    const std::int64_t top = below(words[0], height) - cutout.size / 2, left = below(words[1], width) - cutout.size / 2;
    const std::int64_t from = std::max<std::int64_t>(left, 0), to = std::min(left + cutout.size, width);
    for (std::int64_t y = std::max<std::int64_t>(top, 0); y < std::min(top + cutout.size, height); ++y) {
      std::memset(row(y) + from * channels, 0, static_cast<std::size_t>((to - from) * channels));
    }
  }
};

// The reason why an augmentation cannot change images of this size; empty if it can.
struct Misfit {
  const Shape& shape;
  std::int64_t side() const { return std::min(shape[0], shape[1]); }

  std::pair<std::string, std::string> operator()(const spec::augment::RandomCrop& crop) const {
    if (crop.padding < side()) return {};
    return {fmt::format("padding {} must be less than the sides of the images, which are {}x{}", crop.padding, shape[0],
                        shape[1]),
            fmt::format("use at most {}; an eighth of the side is usual", side() - 1)};
  }
  std::pair<std::string, std::string> operator()(const spec::augment::RandomResizedCrop&) const { return {}; }
  std::pair<std::string, std::string> operator()(const spec::augment::RandomFlip&) const { return {}; }
  std::pair<std::string, std::string> operator()(const spec::augment::RandomRotation&) const { return {}; }
  std::pair<std::string, std::string> operator()(const spec::augment::ColorJitter& jitter) const {
    const std::int64_t channels = shape[2];
    if (channels != 1 && channels != 3) {
      return {fmt::format("colours are those of images of 1 or 3 channels, and these have {}", channels), "remove it"};
    }
    if (!changes(jitter.brightness, 1) && !changes(jitter.contrast, 1) && !changes(jitter.saturation, 1) &&
        !changes(jitter.hue, 0)) {
      return {"brightness, contrast, saturation and hue all stay as they are",
              channels == 3 ? "for example color_jitter: {brightness: 0.2, contrast: 0.2, saturation: 0.2, hue: 0.1}"
                            : "for example color_jitter: {brightness: 0.2, contrast: 0.2}"};
    }
    if (channels == 3) return {};
    const char* const colour = changes(jitter.saturation, 1) ? "saturation" : changes(jitter.hue, 0) ? "hue" : nullptr;
    if (colour == nullptr) return {};
    return {fmt::format("{} is for images of 3 channels, and these have 1", colour),
            fmt::format("remove {}; brightness and contrast are for images of 1 channel, too", colour)};
  }
  std::pair<std::string, std::string> operator()(const spec::augment::Mixup&) const { return {}; }
  std::pair<std::string, std::string> operator()(const spec::augment::Cutmix&) const { return {}; }
  std::pair<std::string, std::string> operator()(const spec::augment::Cutout& cutout) const {
    if (cutout.size <= side()) return {};
    return {fmt::format("size {} is more than a side of the images, which are {}x{}", cutout.size, shape[0], shape[1]),
            fmt::format("use at most {}; a quarter to a half of the side is usual", side())};
  }
};

}  // namespace

void check_augment(const std::vector<spec::Augmentation>& augment, const Field& input) {
  std::vector<Diagnostic> errors;
  for (const spec::Augmentation& one : augment) {
    const std::string name = spec::to_string(one.kind);
    if (input.dtype != DType::u8 || input.shape.size() != 3) {
      errors.push_back({"config",
                        one.place,
                        fmt::format("{} changes 8-bit images [height, width, channels]; the inputs are {}{}", name,
                                    to_string(input.dtype), to_string(input.shape)),
                        "remove it; arrays of images in idx and npz files are to be uint8",
                        {}});
      continue;
    }
    if (const auto [why, help] = std::visit(Misfit{input.shape}, one.kind); !why.empty()) {
      errors.push_back({"config", one.place, fmt::format("{}: {}", name, why), help, {}});
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

Augmenter::Augmenter(const std::vector<spec::Augmentation>& augment, const Field& input, std::uint64_t seed) {
  if (augment.empty()) return;
  height_ = input.shape[0];
  width_ = input.shape[1];
  channels_ = input.shape[2];
  for (std::size_t i = 0; i < augment.size(); ++i) {
    const std::string stream = fmt::format("data/augment/{}/{}", i, spec::to_string(augment[i].kind));
    operations_.push_back({augment[i].kind, stream_key(seed, stream)});
  }
}

void Augmenter::apply(std::int64_t position, std::byte* image) const {
  const auto at = static_cast<std::uint64_t>(position);
  for (const Operation& operation : operations_) {
    std::visit(Change{image, height_, width_, channels_, Draws(operation.key, at)}, operation.kind);
  }
}

}  // namespace pmaptrain::data
