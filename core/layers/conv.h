// Convolution of NHWC images with an HWIO kernel, of sequences NTC with a kernel TIO, or of volumes NDHWC with a kernel
// DHWIO, plus a bias per channel.
#pragma once

#include "core/equations/arithmetic.h"
#include "core/layers/keys.h"
#include "core/layers/node.h"
#include "core/layers/rows.h"
#include "core/layers/window.h"

namespace pmaptrain::layers {

struct Conv {
  std::int64_t features = 1;
  std::vector<std::int64_t> kernel_size;  // height and width, positions, or depth, height and width; so are those below
  std::vector<std::int64_t> strides = {1, 1};
  Padding padding = {};
  bool use_bias = true;
  std::vector<std::int64_t> kernel_dilation = {1, 1};
  std::int64_t feature_group_count = 1;
  KernelInit kernel_init = {};
  VectorInit bias_init = {};

  static Declaration<Conv> declaration() {
    return declare::kind<Conv>(
        {.path = "conv",
         .meaning =
             "Convolution over height and width, over positions, or over depth, height and width, as kernel_size "
             "says. Parameters: kernel (height, width, in / feature_group_count, out), without height over "
             "positions and with a depth before it over volumes, and bias (out).",
         .example = "- conv: {features: 32, kernel_size: [3, 3]}"},
        field(&Conv::features, output_channels()), field(&Conv::kernel_size, kernel_size_key("kernel_size: [3, 3]")),
        field(&Conv::strides,
              along_kernel("strides", "Strides along each dimension of the kernel.", "strides: [2, 2]")),
        field(
            &Conv::padding,
            {.path = "padding",
             .high = 65536,
             .words = {"SAME", "VALID", "CAUSAL"},
             .length = 3,
             .least_length = 1,
             .as_long_as = "kernel_size",
             .meaning = "SAME: zero padding for an output size of ceil(size / stride). VALID: no padding. CAUSAL: over "
                        "positions, all padding before, so that none sees those after it. Or explicit zero padding: "
                        "[before, after] for each dimension of the kernel.",
             .example = "padding: [[1, 1], [1, 1]]"}),
        field(&Conv::kernel_dilation,
              along_kernel("kernel_dilation",
                           "Spacing between kernel elements along each dimension (dilated convolution).",
                           "kernel_dilation: [2, 2]")),
        field(&Conv::feature_group_count,
              {.path = "feature_group_count",
               .low = 1,
               .meaning = "Number of groups: input and output channels are split into groups, which are "
                          "convolved separately. As many groups as input channels give a depthwise "
                          "convolution.",
               .example = "feature_group_count: 2"}),
        field(&Conv::use_bias, bias_of_channels()), field(&Conv::kernel_init, layers::kernel_init()),
        field(&Conv::bias_init, layers::bias_init()));
  }
  static constexpr bool reads_before = true;
  bool looks_ahead() const { return padding.kind != PaddingKind::causal; }
  static constexpr bool takes_lengths = true;

  std::optional<Node> plan(const LayerInput& in) const {
    if (!takes_windows(in, "kernel_size", kernel_size,
                       "move flatten and dense layers after the convolutions, or use dense here")) {
      return std::nullopt;
    }
    const bool of_positions = kernel_size.size() == 1;
    if (padding.kind == PaddingKind::causal && !of_positions) {
      return in.refuse("has padding CAUSAL, which is over positions, and its input has no order",
                       "padding: SAME; or a kernel_size of one number, for an input [positions,channels]");
    }
    const Window window = place_window(padding, in.shape, kernel_size, strides, kernel_dilation);
    if (!window.fits()) {
      const bool dilated = kernel_dilation != std::vector<std::int64_t>(kernel_size.size(), 1);
      return in.refuse("has kernel_size " + to_string(kernel_size) +
                           (dilated ? " with kernel_dilation " + to_string(kernel_dilation) : "") + " with padding " +
                           describe(padding) + ", which does not fit into its input " + in.shown(),
                       "use a smaller kernel_size, padding: SAME, or fewer pooling layers before it");
    }
    const std::int64_t channels = in.shape.back(), groups = feature_group_count;
    if (channels % groups != 0 || features % groups != 0) {
      const bool of_input = channels % groups != 0;
      return in.refuse("has feature_group_count " + std::to_string(groups) + ", which does not divide the " +
                           std::to_string(of_input ? channels : features) +
                           (of_input ? " channels of its input " + in.shown() : " features"),
                       "channels and features must be multiples of feature_group_count");
    }
    const std::int64_t channels_in = channels / groups;
    Node layer = in.start();
    layer.output = window.output;
    layer.output.push_back(features);
    layer.image = image_of_windows(layer.output);
    if (!set_lengths(in, window, padding, (kernel_size.front() - 1) * kernel_dilation.front() + 1, strides.front(),
                     layer))
      return std::nullopt;
    Shape kernel = kernel_size;
    kernel.insert(kernel.end(), {channels_in, features});
    const std::size_t dimensions = kernel_size.size();
    layer.parameters.push_back(LayerInput::divisible(
        in.kernel(kernel, kernel_init, {channels_in, features, numel(kernel_size)}, out_and_in_first(dimensions)),
        {.columns = dimensions + 1, .rows = dimensions}));
    if (use_bias) {
      layer.parameters.push_back(LayerInput::divisible(in.parameter("bias", {features}, bias_init()), {.columns = 0}));
    }
    layer.divisible = {.columns = groups == 1, .rows = groups == 1, .unit = "channels"};
    in.expect_used(use_bias, bias_init, "bias");
    const ops::Conv op{as_image(strides), as_image(window).padding, false, as_image(kernel_dilation), groups};
    layer.apply = [op, of_positions](const LayerCall& call, Value x) {
      Builder& b = call.b;
      x = call.inside_or(x, 0);
      const DType dtype = b.type(x).dtype;
      const bool is_term = call.node.division == Division::rows;
      const std::optional<Value> bias = call.parameters.size() > 1 ? std::optional(call.parameters[1]) : std::nullopt;
      std::vector<Value> operands{x, cast(b, call.parameters[0], dtype)};
      if (bias && !is_term) operands.push_back(*bias);
      if (of_positions) {
        operands[0] = with_height(b, x, 1);
        operands[1] = with_height(b, operands[1], 0);
      }
      Value y = b.emit(op, operands);
      if (of_positions) y = without_height(b, y);
      return is_term ? sum_of_terms(b, y, call.node.division_axes, bias, dtype) : y;
    };
    return layer;
  }
};

}  // namespace pmaptrain::layers
