#include "core/model/arithmetic.h"
#include "core/model/layers.h"
#include "core/model/window.h"

namespace pmaptrain::model {

std::optional<PlannedLayer> plan(const spec::MaxPool& pool, const LayerInput& in) {
  if (in.shape.size() != 3) {
    return in.refuse("takes images [height,width,channels]; its input is " + in.shown(),
                     "put flatten and dense layers after the pooling");
  }
  const Window window = place_window(pool.padding, in.shape, pool.window_shape, pool.strides);
  if (window.output[0] < 1 || window.output[1] < 1) {
    return in.refuse("has window_shape " + to_string(pool.window_shape) + " with padding " + describe(pool.padding) +
                         ", which does not fit into its input " + in.shown(),
                     "a smaller window_shape, padding: SAME, or fewer pooling layers before it");
  }
  PlannedLayer layer = in.start();
  layer.output = {window.output[0], window.output[1], in.shape[2]};
  layer.apply = [size = pool.window_shape, strides = pool.strides, padding = window.padding](const LayerCall& call,
                                                                                             Value x) {
    return call.b.emit(ops::MaxPool{size, strides, padding}, {x});
  };
  return layer;
}

}  // namespace pmaptrain::model
