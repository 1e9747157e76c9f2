// What losses are made of, and keys that several have.
#pragma once

#include "core/declare/kind.h"
#include "core/equations/arithmetic.h"
#include "core/losses/equations.h"
#include "core/losses/objective.h"

namespace pmaptrain::losses {

using namespace equations;
using declare::Declaration;
using declare::field;
using declare::Key;

inline Key weights_key() {
  return {.path = "class_weights",
          .high = declare::unbounded,
          .words = {"balanced"},
          .meaning =
              "One weight for each class, which scales the loss of examples with that label. The mean still "
              "divides by the number of examples, not by the sum of the weights. balanced: examples / (classes * "
              "examples of the class) in the training split, as scikit-learn's class_weight.",
          .example = "class_weights: [1.0, 5.0]\nclass_weights: balanced",
          .fallback_text = "1 for every class"};
}

}  // namespace pmaptrain::losses
