#include "core/model/arithmetic.h"
#include "core/model/layers.h"
#include "core/model/window.h"

namespace pmaptrain::model {

// Convolution of NHWC images with an HWIO kernel, plus a bias per channel.
std::optional<PlannedLayer> plan(const spec::Conv& conv, const LayerInput& in) {
  if (in.shape.size() != 3) {
    return in.refuse("takes images [height,width,channels]; its input is " + in.shown(),
                     "put flatten and dense layers after the convolutions, or use dense here");
  }
  const Window window = place_window(conv.padding, in.shape, conv.kernel_size, conv.strides);
  if (window.output[0] < 1 || window.output[1] < 1) {
    return in.refuse("has kernel_size " + to_string(conv.kernel_size) + " with padding " + describe(conv.padding) +
                         ", which does not fit into its input " + in.shown(),
                     "a smaller kernel_size, padding: SAME, or fewer pooling layers before it");
  }
  const std::int64_t height = conv.kernel_size[0], width = conv.kernel_size[1], channels = in.shape[2];
  PlannedLayer layer = in.start();
  layer.output = {window.output[0], window.output[1], conv.features};
  layer.parameters.push_back(in.parameter("kernel", {height, width, channels, conv.features},
                                          {InitializerKind::lecun_normal, height * width * channels}));
  if (conv.use_bias) layer.parameters.push_back(in.parameter("bias", {conv.features}, {}));
  layer.apply = [use_bias = conv.use_bias, strides = conv.strides, padding = window.padding](const LayerCall& call,
                                                                                             Value x) {
    const ops::Conv op{strides, padding};
    return use_bias ? call.b.emit(op, {x, call.parameters[0], call.parameters[1]})
                    : call.b.emit(op, {x, call.parameters[0]});
  };
  return layer;
}

}  // namespace pmaptrain::model
