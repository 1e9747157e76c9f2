#include "core/equations/arithmetic.h"
#include "core/model/layers.h"
#include "core/model/window.h"

namespace pmaptrain::model {

// Convolution of NHWC images with an HWIO kernel, plus a bias per channel.
std::optional<Node> plan(const spec::Conv& conv, const LayerInput& in) {
  if (in.shape.size() != 3) {
    return in.refuse_no_image("move flatten and dense layers after the convolutions, or use dense here");
  }
  const Window window = place_window(conv.padding, in.shape, conv.kernel_size, conv.strides, conv.kernel_dilation);
  if (window.output[0] < 1 || window.output[1] < 1) {
    const bool dilated = conv.kernel_dilation != std::vector<std::int64_t>{1, 1};
    return in.refuse("has kernel_size " + to_string(conv.kernel_size) +
                         (dilated ? " with kernel_dilation " + to_string(conv.kernel_dilation) : "") +
                         " with padding " + describe(conv.padding) + ", which does not fit into its input " +
                         in.shown(),
                     "use a smaller kernel_size, padding: SAME, or fewer pooling layers before it");
  }
  const std::int64_t height = conv.kernel_size[0], width = conv.kernel_size[1], channels = in.shape[2];
  const std::int64_t groups = conv.feature_group_count;
  if (channels % groups != 0 || conv.features % groups != 0) {
    return in.refuse("has feature_group_count " + std::to_string(groups) + ", which does not divide the " +
                         std::to_string(channels % groups != 0 ? channels : conv.features) +
                         (channels % groups != 0 ? " channels of its input " + in.shown() : " features"),
                     "channels and features must be multiples of feature_group_count");
  }
  const std::int64_t channels_in = channels / groups;
  Node layer = in.start();
  layer.output = {window.output[0], window.output[1], conv.features};
  layer.parameters.push_back(in.kernel({height, width, channels_in, conv.features}, conv.kernel_init,
                                       {channels_in, conv.features, height * width}, {3, 2, 0, 1}));
  if (conv.use_bias) layer.parameters.push_back(in.parameter("bias", {conv.features}, initializer_of(conv.bias_init)));
  in.expect_used(conv.use_bias, conv.bias_init, "bias");
  const ops::Conv op{conv.strides, window.padding, false, conv.kernel_dilation, groups};
  layer.apply = [op, use_bias = conv.use_bias](const LayerCall& call, Value x) {
    const Value kernel = cast(call.b, call.parameters[0], call.b.type(x).dtype);
    return use_bias ? call.b.emit(op, {x, kernel, call.parameters[1]}) : call.b.emit(op, {x, kernel});
  };
  return layer;
}

}  // namespace pmaptrain::model
