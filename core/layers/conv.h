// Convolution of NHWC images with an HWIO kernel, plus a bias per channel.
#pragma once

#include "core/equations/arithmetic.h"
#include "core/layers/keys.h"
#include "core/layers/node.h"
#include "core/layers/window.h"

namespace pmaptrain::layers {

struct Conv {
  std::int64_t features = 1;
  std::vector<std::int64_t> kernel_size;       // height, width
  std::vector<std::int64_t> strides = {1, 1};  // height, width
  Padding padding;
  bool use_bias = true;
  std::vector<std::int64_t> kernel_dilation = {1, 1};  // height, width
  std::int64_t feature_group_count = 1;
  KernelInit kernel_init = {};
  VectorInit bias_init = {};

  static Declaration<Conv> declaration() {
    return declare::kind<Conv>(
        {.path = "conv",
         .meaning = "Convolution over height and width. Parameters: kernel (height, width, in / feature_group_count, "
                    "out) and bias (out).",
         .example = "- conv: {features: 32, kernel_size: [3, 3]}"},
        field(&Conv::features, {.path = "features",
                                .need = Need::required,
                                .low = 1,
                                .meaning = "Number of output channels.",
                                .example = "features: 32"}),
        field(&Conv::kernel_size, {.path = "kernel_size",
                                   .need = Need::required,
                                   .low = 1,
                                   .high = 65536,
                                   .length = 2,
                                   .meaning = "Height and width of the kernel.",
                                   .example = "kernel_size: [3, 3]"}),
        field(&Conv::strides, {.path = "strides",
                               .low = 1,
                               .high = 65536,
                               .length = 2,
                               .meaning = "Strides along height and width.",
                               .example = "strides: [2, 2]"}),
        field(&Conv::padding,
              {.path = "padding",
               .high = 65536,
               .meaning = "SAME: zero padding for an output size of ceil(size / stride). VALID: no padding. "
                          "Or explicit zero padding: [before, after] for height and for width.",
               .example = "padding: [[1, 1], [1, 1]]"}),
        field(&Conv::kernel_dilation,
              {.path = "kernel_dilation",
               .low = 1,
               .high = 65536,
               .length = 2,
               .meaning = "Spacing between kernel elements along height and width (dilated convolution).",
               .example = "kernel_dilation: [2, 2]"}),
        field(&Conv::feature_group_count,
              {.path = "feature_group_count",
               .low = 1,
               .meaning = "Number of groups: input and output channels are split into groups, which are "
                          "convolved separately. As many groups as input channels give a depthwise "
                          "convolution.",
               .example = "feature_group_count: 2"}),
        field(&Conv::use_bias,
              {.path = "use_bias", .meaning = "Whether to add a bias to each channel.", .example = "use_bias: false"}),
        field(&Conv::kernel_init, layers::kernel_init()), field(&Conv::bias_init, layers::bias_init()));
  }
  static constexpr bool looks_ahead = true;

  std::optional<Node> plan(const LayerInput& in) const {
    if (in.shape.size() != 3) {
      return in.refuse_no_image("move flatten and dense layers after the convolutions, or use dense here");
    }
    const Window window = place_window(padding, in.shape, kernel_size, strides, kernel_dilation);
    if (window.output[0] < 1 || window.output[1] < 1) {
      const bool dilated = kernel_dilation != std::vector<std::int64_t>{1, 1};
      return in.refuse("has kernel_size " + to_string(kernel_size) +
                           (dilated ? " with kernel_dilation " + to_string(kernel_dilation) : "") + " with padding " +
                           describe(padding) + ", which does not fit into its input " + in.shown(),
                       "use a smaller kernel_size, padding: SAME, or fewer pooling layers before it");
    }
    const std::int64_t height = kernel_size[0], width = kernel_size[1], channels = in.shape[2];
    const std::int64_t groups = feature_group_count;
    if (channels % groups != 0 || features % groups != 0) {
      const bool of_input = channels % groups != 0;
      return in.refuse("has feature_group_count " + std::to_string(groups) + ", which does not divide the " +
                           std::to_string(of_input ? channels : features) +
                           (of_input ? " channels of its input " + in.shown() : " features"),
                       "channels and features must be multiples of feature_group_count");
    }
    const std::int64_t channels_in = channels / groups;
    Node layer = in.start();
    layer.output = {window.output[0], window.output[1], features};
    layer.parameters.push_back(in.kernel({height, width, channels_in, features}, kernel_init,
                                         {channels_in, features, height * width}, {3, 2, 0, 1}));
    if (use_bias) layer.parameters.push_back(in.parameter("bias", {features}, bias_init()));
    in.expect_used(use_bias, bias_init, "bias");
    const ops::Conv op{strides, window.padding, false, kernel_dilation, groups};
    layer.apply = [op, use_bias = use_bias](const LayerCall& call, Value x) {
      const Value kernel = cast(call.b, call.parameters[0], call.b.type(x).dtype);
      return use_bias ? call.b.emit(op, {x, kernel, call.parameters[1]}) : call.b.emit(op, {x, kernel});
    };
    return layer;
  }
};

}  // namespace pmaptrain::layers
