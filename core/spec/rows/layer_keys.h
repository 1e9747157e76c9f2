// Keys that several layers have.
#pragma once

#include <string_view>

#include "core/spec/rows/row.h"

namespace pmaptrain::spec {

// The initializers of all layers are described with those of dense.
inline Key kernel_init(std::string_view like = "model.layers.dense.kernel_init",
                       std::string_view fallback = "lecun_normal") {
  return {.path = "kernel_init",
          .meaning = "How the first values of the kernel are drawn.",
          .example = "kernel_init: he_normal",
          .fallback_text = fallback,
          .like = like};
}
inline Key bias_init(std::string_view like = "model.layers.dense.bias_init") {
  return {.path = "bias_init",
          .meaning = "The first values of the bias.",
          .example = "bias_init: {constant: 0.1}",
          .fallback_text = "zeros",
          .like = like};
}
inline Key scale_init() {
  return {.path = "scale_init",
          .meaning = "The first values of the scale, which is zeros for a residual branch that begins as the identity.",
          .example = "scale_init: zeros",
          .fallback_text = "ones",
          .like = "model.layers.dense.bias_init"};
}
inline Key embedding_init(std::string_view fallback) {
  return {.path = "embedding_init",
          .meaning = "How the first values of the table (rows, features) are drawn.",
          .example = "embedding_init: {normal: {stddev: 0.02}}",
          .fallback_text = fallback,
          .like = "model.layers.dense.kernel_init"};
}

}  // namespace pmaptrain::spec
