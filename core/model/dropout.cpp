#include "core/model/dropout.h"

#include <cassert>

#include "core/equations/arithmetic.h"

namespace pmaptrain::model {
namespace {

std::string number_of(const Node& layer, const char* what) { return "dropout/" + layer.name + "/" + what; }

}  // namespace

void add_dropout(Node& layer, double rate, DType storage) {
  layer.draws = rate > 0.0;
  if (!layer.draws) return;
  layer.numbers = {{number_of(layer, "rate"), rate, DType::f32},
                   {number_of(layer, "scale"), 1.0 / (1.0 - rate), storage}};
}

// The random bits of an example depend only on the key of the layer and on the position of the example in the sample
// stream, which differs in every epoch. They do not depend on the mesh or on microbatches.
Value drop(const LayerCall& call, Value x) {
  if (!call.training || !call.node.draws) return x;
  assert(call.key && call.rows);
  Builder& b = call.b;
  const Shape shape = b.type(x).shape;
  const Value uniform = b.emit(ops::RandomUniform{Shape(shape.begin() + 1, shape.end())}, {*call.key, *call.rows});
  const Value keep = b.emit(ops::Ge{}, {uniform, call.numbers[number_of(call.node, "rate")]});
  const Value scaled = mul(b, x, call.numbers[number_of(call.node, "scale")]);
  return select(b, keep, scaled, scalar_like(b, scaled, 0.0));
}

std::vector<Value> dropout_operands(const LayerCall& call, DType scale) {
  assert(call.key && call.rows);
  return {*call.key, *call.rows, call.numbers[number_of(call.node, "rate")],
          cast(call.b, call.numbers[number_of(call.node, "scale")], scale)};
}

// Evaluation is the identity.
std::optional<Node> plan(const spec::Dropout& dropout, const LayerInput& in) {
  Node layer = in.start();
  add_dropout(layer, dropout.rate, in.precision.storage);
  layer.apply = [storage = in.precision.storage](const LayerCall& call, Value x) {
    if (!call.training || !call.node.draws) return x;
    const DType dtype = call.b.type(x).dtype;
    return cast(call.b, drop(call, cast(call.b, x, storage)), dtype);
  };
  return layer;
}

}  // namespace pmaptrain::model
