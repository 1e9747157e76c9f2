// mixup (https://arxiv.org/abs/1710.09412).
#pragma once

#include "core/augment/beta.h"

namespace pmaptrain::augment {

struct Mixup {
  double alpha = 0.2;

  static Declaration<Mixup> declaration() {
    return declare::kind<Mixup>(
        {.path = "mixup",
         .meaning =
             "Replaces each image by a weighted sum of it and another image of the batch (row i of B rows and row "
             "B - 1 - i), and the labels by the same sum: the loss is then that of class probabilities. A share is "
             "drawn for each batch. The last of the list; with softmax_cross_entropy.",
         .example = "augment: [random_flip, mixup: {alpha: 0.2}]"},
        field(&Mixup::alpha, alpha_key("alpha: 0.2")));
  }
  Mix mix(ImageSize /*size*/, const Draws& draws) const {
    WordStream words(draws);
    return {as_share(draw_beta(alpha, words)), std::nullopt};
  }
};

}  // namespace pmaptrain::augment
