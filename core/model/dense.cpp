#include "core/equations/arithmetic.h"
#include "core/model/layers.h"

namespace pmaptrain::model {

// y = x · kernel + bias along the last dimension, kernel (in, out).
std::optional<Node> plan(const spec::Dense& dense, const LayerInput& in) {
  if (in.shape.empty()) {
    return in.refuse("takes features [..., N]; its input is " + in.shown(),
                     "add flatten before it, which gives the shape [1]");
  }
  const std::int64_t features_in = in.shape.back();
  Node layer = in.start();
  layer.output.back() = dense.features;
  layer.image = {};
  layer.parameters.push_back(
      in.kernel({features_in, dense.features}, dense.kernel_init, {features_in, dense.features}, {1, 0}));
  layer.parameters.back().image = in.image;
  if (dense.use_bias)
    layer.parameters.push_back(in.parameter("bias", {dense.features}, initializer_of(dense.bias_init)));
  in.expect_used(dense.use_bias, dense.bias_init, "bias");
  layer.apply = [use_bias = dense.use_bias](const LayerCall& call, Value x) {
    // The bias is added to the sum before that is rounded.
    const Value kernel = cast(call.b, call.parameters[0], call.b.type(x).dtype);
    return use_bias ? call.b.emit(ops::Matmul{}, {x, kernel, call.parameters[1]})
                    : call.b.emit(ops::Matmul{}, {x, kernel});
  };
  return layer;
}

}  // namespace pmaptrain::model
