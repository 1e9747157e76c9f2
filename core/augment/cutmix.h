// CutMix (https://arxiv.org/abs/1905.04899).
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/augment/beta.h"

namespace pmaptrain::augment {

struct Cutmix {
  double alpha = 1.0;

  static Declaration<Cutmix> declaration() {
    return declare::kind<Cutmix>(
        {.path = "cutmix",
         .meaning =
             "Replaces a rectangle of each image by that of another image of the batch (row i of B rows and row "
             "B - 1 - i), and the labels by their sum, weighted by the areas. A rectangle is drawn for each batch; "
             "its share of the area is that of the distribution, unless a part of it lies outside. The last of the "
             "list; with softmax_cross_entropy.",
         .example = "augment: [random_flip, cutmix: {alpha: 1.0}]"},
        field(&Cutmix::alpha, alpha_key("alpha: 1.0")));
  }
  // The box has the share 1 - lambda of the area, with lambda from Beta(alpha, alpha), and its centre is a pixel of the
  // image. Where a part of it lies outside, less is cut, and the share is that of what is cut.
  Mix mix(ImageSize size, const Draws& draws) const {
    WordStream words(draws);
    const double side = std::sqrt(1 - draw_beta(alpha, words));
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
};

}  // namespace pmaptrain::augment
