#include "core/model/arithmetic.h"
#include "core/model/layers.h"

namespace pmaptrain::model {

// y = x · kernel + bias, kernel (in, out).
std::optional<PlannedLayer> plan(const spec::Dense& dense, const LayerInput& in) {
  if (in.shape.size() != 1) {
    return in.refuse("takes features [N]; its input is " + in.shown(),
                     in.shape.empty()
                         ? "add flatten before it, which gives the shape [1]"
                         : "add flatten before it, which gives the shape [" + std::to_string(numel(in.shape)) + "]");
  }
  const std::int64_t features_in = in.shape.front();
  PlannedLayer layer = in.start();
  layer.output = {dense.features};
  layer.parameters.push_back(
      in.parameter("kernel", {features_in, dense.features}, {InitializerKind::lecun_normal, features_in}));
  if (dense.use_bias) layer.parameters.push_back(in.parameter("bias", {dense.features}, {}));
  layer.apply = [use_bias = dense.use_bias](const LayerCall& call, Value x) {
    // The bias is added to the sum before that is rounded.
    const Value kernel = cast(call.b, call.parameters[0], call.b.type(x).dtype);
    return use_bias ? call.b.emit(ops::Matmul{}, {x, kernel, call.parameters[1]})
                    : call.b.emit(ops::Matmul{}, {x, kernel});
  };
  return layer;
}

}  // namespace pmaptrain::model
