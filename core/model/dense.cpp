#include "core/model/arithmetic.h"
#include "core/model/layers.h"

namespace pmaptrain::model {

// y = x · kernel + bias, kernel (in, out).
std::optional<Node> plan(const spec::Dense& dense, const LayerInput& in) {
  if (in.shape.size() != 1) {
    return in.refuse("takes features [N]; its input is " + in.shown(),
                     in.shape.empty()
                         ? "add flatten before it, which gives the shape [1]"
                         : "add flatten before it, which gives the shape [" + std::to_string(numel(in.shape)) + "]");
  }
  const std::int64_t features_in = in.shape.front();
  Node layer = in.start();
  layer.output = {dense.features};
  layer.image = {};
  layer.parameters.push_back(in.kernel({features_in, dense.features}, features_in, {1, 0}));
  layer.parameters.back().image = in.image;
  if (dense.use_bias) layer.parameters.push_back(in.parameter("bias", {dense.features}, {}));
  layer.apply = [use_bias = dense.use_bias](const LayerCall& call, Value x) {
    // The bias is added to the sum before that is rounded.
    const Value kernel = cast(call.b, call.parameters[0], call.b.type(x).dtype);
    return use_bias ? call.b.emit(ops::Matmul{}, {x, kernel, call.parameters[1]})
                    : call.b.emit(ops::Matmul{}, {x, kernel});
  };
  return layer;
}

onnx::Value to_onnx(const spec::Dense& dense, const OnnxCall& call, const onnx::Value& x) {
  std::vector<std::string> inputs{x.name, call.parameter(0)};
  if (dense.use_bias) inputs.push_back(call.parameter(1));
  return {call.graph.node("Gemm", std::move(inputs))};
}

}  // namespace pmaptrain::model
