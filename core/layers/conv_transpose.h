// Transposed convolution with the numbers of Flax's ConvTranspose: windows are apart by the strides in the output, and
// overlap where they are larger. Images are NHWC with a kernel HWIO, sequences NTC with a kernel TIO, volumes NDHWC
// with a kernel DHWIO.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/equations/arithmetic.h"
#include "core/layers/keys.h"
#include "core/layers/node.h"
#include "core/layers/window.h"

namespace pmaptrain::layers {

// Along a dimension: a convolution of `size` elements with this padding gives the input of the layer.
struct TransposedWindow {
  std::int64_t size = 0, before = 0, after = 0;
};

// As lax.conv_transpose pads. SAME gives input · stride elements, VALID also what windows have beyond the stride.
inline TransposedWindow transposed_window(PaddingKind padding, std::int64_t input, std::int64_t extent,
                                          std::int64_t stride) {
  const std::int64_t beyond = std::max<std::int64_t>(extent - stride, 0);
  if (padding == PaddingKind::valid) return {input * stride + beyond, 0, 0};
  const std::int64_t before = beyond / 2;
  return {input * stride, before, beyond - before};
}

struct ConvTranspose {
  std::int64_t features = 1;
  std::vector<std::int64_t> kernel_size;  // height and width, positions, or depth, height and width; so are those below
  std::vector<std::int64_t> strides = {1, 1};
  Padding padding = {};
  bool use_bias = true;
  std::vector<std::int64_t> kernel_dilation = {1, 1};
  KernelInit kernel_init = {};
  VectorInit bias_init = {};

  static Declaration<ConvTranspose> declaration() {
    return declare::kind<ConvTranspose>(
        {.path = "conv_transpose",
         .meaning = "Transposed convolution over height and width, over positions, or over depth, height and width, as "
                    "kernel_size says: larger by the strides. Parameters: kernel (height, width, in, out), without "
                    "height over positions and with a depth before it over volumes, and bias (out).",
         .example = "- conv_transpose: {features: 32, kernel_size: [2, 2], strides: [2, 2]}"},
        field(&ConvTranspose::features, output_channels()),
        field(&ConvTranspose::kernel_size, kernel_size_key("kernel_size: [2, 2]")),
        field(&ConvTranspose::strides,
              along_kernel("strides", "How far windows are apart in the output.", "strides: [2, 2]")),
        field(&ConvTranspose::padding,
              {.path = "padding",
               .words = {"SAME", "VALID"},
               .length = 3,
               .least_length = 1,
               .as_long_as = "kernel_size",
               .meaning = "SAME: an output size of size * stride. VALID: all that windows reach.",
               .example = "padding: VALID"}),
        field(&ConvTranspose::kernel_dilation,
              along_kernel("kernel_dilation", "Spacing between kernel elements along each dimension.",
                           "kernel_dilation: [2, 2]")),
        field(&ConvTranspose::use_bias, bias_of_channels()), field(&ConvTranspose::kernel_init, layers::kernel_init()),
        field(&ConvTranspose::bias_init, layers::bias_init()));
  }
  static constexpr bool looks_ahead = true;

  std::optional<Node> plan(const LayerInput& in) const {
    if (!takes_windows(in, "kernel_size", kernel_size, "move flatten and dense layers after it, or use dense here")) {
      return std::nullopt;
    }
    if (padding.kind != PaddingKind::same && padding.kind != PaddingKind::valid) {
      return in.refuse("has padding " + describe(padding), "a transposed convolution has padding: SAME or VALID");
    }
    const bool of_positions = kernel_size.size() == 1;
    const std::int64_t channels = in.shape.back();
    Node layer = in.start();
    ops::ConvInputGrad op{as_image(strides), {}, {}, as_image(kernel_dilation), 1};
    for (std::size_t d = 0; d < kernel_size.size(); ++d) {
      const std::int64_t extent = (kernel_size[d] - 1) * kernel_dilation[d] + 1;
      const TransposedWindow window = transposed_window(padding.kind, in.shape[d], extent, strides[d]);
      layer.output[d] = window.size;
      op.padding.emplace_back(window.before, window.after);
    }
    if (of_positions) op.padding.insert(op.padding.begin(), {0, 0});
    layer.output.back() = features;
    layer.image = image_of_windows(layer.output);
    Shape kernel = kernel_size;
    kernel.insert(kernel.end(), {channels, features});
    layer.parameters.push_back(in.kernel(kernel, kernel_init, {channels, features, numel(kernel_size)},
                                         out_and_in_first(kernel_size.size(), true)));
    layer.parameters.back().torch.reversed = kernel_size.size();
    if (use_bias) layer.parameters.push_back(in.parameter("bias", {features}, bias_init()));
    in.expect_used(use_bias, bias_init, "bias");
    layer.apply = [op, of_positions](const LayerCall& call, Value x) {
      Builder& b = call.b;
      Value weights = cast(b, call.parameters[0], b.type(x).dtype);
      if (of_positions) weights = with_height(b, weights, 0), x = with_height(b, x, 1);
      // Flax's kernel meets the input as that of a convolution does: backwards.
      std::vector<std::int64_t> windows(op.padding.size());
      std::iota(windows.begin(), windows.end(), 0);
      std::vector<std::int64_t> swapped = windows;
      swapped.insert(swapped.end(), {std::ssize(windows) + 1, std::ssize(windows)});
      weights = b.emit(ops::Transpose{swapped}, {b.emit(ops::Reverse{windows}, {weights})});
      ops::ConvInputGrad made = op;
      made.input_shape = output_of(b.type(x).shape, b.type(weights).shape, op);
      Value y = b.emit(made, {weights, x});
      if (call.parameters.size() > 1) {
        const Value bias = cast(b, call.parameters[1], b.type(y).dtype);
        y = add(b, y, broadcast_along(b, bias, b.type(y).shape, std::ssize(windows) + 1));
      }
      return of_positions ? without_height(b, y) : y;
    };
    return layer;
  }

 private:
  // [B, height, width, out] for x [B, height, width, in]; with a depth of volumes.
  static Shape output_of(const Shape& x, const Shape& kernel, const ops::ConvInputGrad& op) {
    Shape shape{x[0]};
    for (std::size_t d = 0; d < op.padding.size(); ++d) {
      const std::int64_t extent = (kernel[d] - 1) * op.dilation[d] + 1, stride = op.strides[d];
      const auto [before, after] = op.padding[d];
      shape.push_back(x[d + 1] * stride + std::max<std::int64_t>(extent - stride, 0) - before - after);
    }
    shape.push_back(kernel[kernel.size() - 2]);
    return shape;
  }
};

}  // namespace pmaptrain::layers
