// Mirror images.
#pragma once

#include <algorithm>
#include <array>

#include "core/augment/augmentation.h"

namespace pmaptrain::augment {

struct RandomFlip {
  static constexpr bool moves = true;

  static Declaration<RandomFlip> declaration() {
    return declare::kind<RandomFlip>({.path = "random_flip",
                                      .meaning = "Mirrors the image left to right, with probability 1/2.",
                                      .example = "augment: [random_flip]"});
  }
  void change(const Pixels& image, const Draws& draws) const {
    if (draws.words()[0] >> 31 == 0) return;
    for (std::int64_t y = 0; y < image.size.height; ++y) {
      std::byte* const row = image.row(y);
      switch (image.channels) {
        case 1: mirror<1>(row, image.size.width); break;
        case 3: mirror<3>(row, image.size.width); break;
        case 4: mirror<4>(row, image.size.width); break;
        default: mirror_any(row, image.size.width, image.channels);
      }
    }
  }

 private:
  // The number of channels is known when it is compiled, so that pixels are moved as a whole.
  template <std::size_t channels>
  static void mirror(std::byte* row, std::int64_t width) {
    struct Pixel {
      std::array<std::byte, channels> bytes;
    };
    auto* const pixels = reinterpret_cast<Pixel*>(row);
    std::reverse(pixels, pixels + width);
  }
  static void mirror_any(std::byte* row, std::int64_t width, std::int64_t channels) {
    for (std::int64_t left = 0, right = width - 1; left < right; ++left, --right) {
      std::swap_ranges(row + left * channels, row + (left + 1) * channels, row + right * channels);
    }
  }
};

}  // namespace pmaptrain::augment
