// Parts of the padded image.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/augment/augmentation.h"

namespace pmaptrain::augment {

struct RandomCrop {
  static constexpr bool moves = true, fills = true;
  std::int64_t padding = 4;  // pixels of zeros on each side

  static Declaration<RandomCrop> declaration() {
    return declare::kind<RandomCrop>(
        {.path = "random_crop",
         .meaning =
             "Pads the image with zeros on each side and takes a part of the original size at a random position.",
         .example = "augment: [random_crop: {padding: 4}]"},
        field(&RandomCrop::padding, {.path = "padding",
                                     .need = Need::required,
                                     .low = 1,
                                     .high = 65535,
                                     .shorthand = true,
                                     .meaning = "Number of pixels on each side.",
                                     .example = "padding: 4"}));
  }
  Misfit misfit(const Shape& shape) const {
    const std::int64_t side = std::min(shape[0], shape[1]);
    if (padding < side) return {};
    return {"padding " + std::to_string(padding) + " must be less than the sides of the images, which are " +
                std::to_string(shape[0]) + "x" + std::to_string(shape[1]),
            "use at most " + std::to_string(side - 1) + "; an eighth of the side is usual"};
  }
  // Row y of the result is row y + down of the image, moved left by `right` pixels, with zeros for what is outside. The
  // order of rows is such that none is overwritten before it is read.
  void change(const Pixels& image, const Draws& draws) const {
    const Words words = draws.words();
    const std::int64_t down = below(words[0], 2 * padding + 1) - padding;
    const std::int64_t right = below(words[1], 2 * padding + 1) - padding;
    const std::int64_t height = image.size.height;
    const auto bytes = static_cast<std::size_t>(image.size.width * image.channels);
    const auto outside = static_cast<std::size_t>(std::abs(right) * image.channels), inside = bytes - outside;
    for (std::int64_t i = 0; i < height; ++i) {
      const std::int64_t y = down >= 0 ? i : height - 1 - i;
      std::byte* const to = image.row(y);
      if (y + down < 0 || y + down >= height) {
        image.clear(to, image.size.width);
      } else if (right >= 0) {
        std::memmove(to, image.row(y + down) + outside, inside);
        image.clear(to + inside, std::abs(right));
      } else {
        std::memmove(to + outside, image.row(y + down), inside);
        image.clear(to, std::abs(right));
      }
    }
  }
};

}  // namespace pmaptrain::augment
