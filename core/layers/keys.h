// Keys that several layers have.
#pragma once

#include <string_view>

#include "core/declare/kind.h"

namespace pmaptrain::layers {

using declare::Declaration;
using declare::field;
using declare::Key;
using declare::Need;

// The initializers of all layers are described with those of dense.
inline Key kernel_init(std::string_view like = "model.layers.dense.kernel_init") {
  return {.path = "kernel_init",
          .meaning = "How the first values of the kernel are drawn.",
          .example = "kernel_init: he_normal",
          .fallback_text = "lecun_normal",
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

// Of every convolution.
inline Key kernel_size_key(std::string_view example) {
  return {.path = "kernel_size",
          .need = Need::required,
          .low = 1,
          .high = 65536,
          .length = 3,
          .least_length = 1,
          .meaning =
              "Height and width of the kernel; [3] of sequences [positions,channels], [3, 3, 3] of volumes "
              "[depth,height,width,channels].",
          .example = example};
}
// A number along each dimension of the kernel.
inline Key along_kernel(std::string_view path, std::string_view meaning, std::string_view example) {
  return {.path = std::string(path),
          .low = 1,
          .high = 65536,
          .length = 3,
          .least_length = 1,
          .as_long_as = "kernel_size",
          .meaning = meaning,
          .example = example};
}
inline Key output_channels() {
  return {.path = "features",
          .need = Need::required,
          .low = 1,
          .meaning = "Number of output channels.",
          .example = "features: 32"};
}
inline Key bias_of_channels() {
  return {.path = "use_bias", .meaning = "Whether to add a bias to each channel.", .example = "use_bias: false"};
}

// Of every pooling.
inline Key window_shape() {
  return {.path = "window_shape",
          .need = Need::required,
          .low = 1,
          .high = 65536,
          .length = 3,
          .least_length = 1,
          .meaning = "Height and width of the window; of sequences its positions, of volumes depth, height and width.",
          .example = "window_shape: [2, 2]"};
}
inline Key window_strides() {
  return {.path = "strides",
          .need = Need::required,
          .low = 1,
          .high = 65536,
          .length = 3,
          .least_length = 1,
          .as_long_as = "window_shape",
          .meaning =
              "Strides along each dimension of the window. They are required, because defaults differ: without "
              "strides PyTorch and Keras move the window by its own size, Flax by 1.",
          .example = "strides: [2, 2]"};
}

inline Key window_padding(std::string_view meaning) {
  return {.path = "padding",
          .high = 65536,
          .words = {"SAME", "VALID"},
          .length = 3,
          .least_length = 1,
          .as_long_as = "window_shape",
          .meaning = meaning,
          .example = "padding: SAME"};
}

// Of every normalisation.
inline Key epsilon_key() {
  return {.path = "epsilon",
          .high = 1,
          .open_low = true,
          .meaning = "What is added to the variance, so that nothing is divided by 0.",
          .example = "epsilon: 1.0e-5"};
}
inline Key use_scale_key() {
  return {
      .path = "use_scale", .meaning = "Whether to multiply each channel by a scale.", .example = "use_scale: false"};
}
inline Key use_norm_bias() {
  return {.path = "use_bias", .meaning = "Whether to add a bias to each channel.", .example = "use_bias: false"};
}

// The list of layers inside of a layer.
inline Key layers_key(std::string_view meaning, std::string_view example) {
  return {.path = "layers",
          .need = Need::required,
          .meaning = meaning,
          .example = example,
          .item = "layer",
          .like = "model.layers"};
}

}  // namespace pmaptrain::layers
