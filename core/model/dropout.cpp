#include <cassert>

#include "core/model/arithmetic.h"
#include "core/model/layers.h"

namespace pmaptrain::model {

// Inverted dropout: in training each element is kept with probability 1 - rate and divided by it, so that evaluation
// is the identity. The random bits of an example depend only on the key of the layer and on the position of the example
// in the sample stream, which differs in every epoch. They do not depend on the mesh or on microbatches.
std::optional<Node> plan(const spec::Dropout& dropout, const LayerInput& in) {
  Node layer = in.start();
  layer.draws = dropout.rate > 0.0;
  const std::string rate = "dropout/" + layer.name + "/rate", scale = "dropout/" + layer.name + "/scale";
  if (layer.draws)
    layer.numbers = {{rate, dropout.rate, DType::f32}, {scale, 1.0 / (1.0 - dropout.rate), in.precision.storage}};
  layer.apply = [draws = layer.draws, rate, scale, storage = in.precision.storage](const LayerCall& call, Value x) {
    if (!call.training || !draws) return x;
    assert(call.key && call.rows);
    Builder& b = call.b;
    const Shape shape = b.type(x).shape;
    const Value uniform = b.emit(ops::RandomUniform{Shape(shape.begin() + 1, shape.end())}, {*call.key, *call.rows});
    const Value keep = b.emit(ops::Ge{}, {uniform, call.numbers[rate]});
    const Value scaled = mul(b, cast(b, x, storage), call.numbers[scale]);
    return cast(b, select(b, keep, scaled, scalar_like(b, scaled, 0.0)), b.type(x).dtype);
  };
  return layer;
}

// The identity in an evaluation.
onnx::Value to_onnx(const spec::Dropout&, const OnnxCall&, const onnx::Value& x) { return x; }

}  // namespace pmaptrain::model
