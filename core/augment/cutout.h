// Squares of zeros.
#pragma once

#include <algorithm>
#include <cstring>

#include "core/augment/augmentation.h"

namespace pmaptrain::augment {

struct Cutout {
  std::int64_t size = 8;  // of the side of the square, in pixels

  static Declaration<Cutout> declaration() {
    return declare::kind<Cutout>(
        {.path = "cutout",
         .meaning =
             "Sets a square to zero. Its centre is a random pixel of the image, so a part of it may lie outside.",
         .example = "augment: [cutout: {size: 8}]"},
        field(&Cutout::size, {.path = "size",
                              .need = Need::required,
                              .low = 1,
                              .high = 65535,
                              .shorthand = true,
                              .meaning = "The side of the square, in pixels.",
                              .example = "size: 8"}));
  }
  Misfit misfit(const Shape& shape) const {
    const std::int64_t side = std::min(shape[0], shape[1]);
    if (size <= side) return {};
    return {"size " + std::to_string(size) + " is more than a side of the images, which are " +
                std::to_string(shape[0]) + "x" + std::to_string(shape[1]),
            "use at most " + std::to_string(side) + "; a quarter to a half of the side is usual"};
  }
  // The centre is a pixel of the image, as in https://arxiv.org/abs/1708.04552.
  void change(const Pixels& image, const Draws& draws) const {
    const Words words = draws.words();
    const auto [height, width] = image.size;
    const std::int64_t top = below(words[0], height) - size / 2, left = below(words[1], width) - size / 2;
    const std::int64_t from = std::max<std::int64_t>(left, 0), to = std::min(left + size, width);
    for (std::int64_t y = std::max<std::int64_t>(top, 0); y < std::min(top + size, height); ++y) {
      std::memset(image.row(y) + from * image.channels, 0, static_cast<std::size_t>((to - from) * image.channels));
    }
  }
};

}  // namespace pmaptrain::augment
