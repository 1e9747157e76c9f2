// The forward pass: scaling of u8 inputs to [0, 1], normalisation, layers.
#include <cassert>
#include <optional>
#include <utility>
#include <vector>

#include "core/equations/arithmetic.h"
#include "core/model/gathers.h"
#include "core/model/model.h"

namespace pmaptrain::model {
namespace {

// `values` (one for all channels, or one per channel, the last dimension) in a shape compatible with x.
Value per_channel(Builder& b, Value x, const std::vector<double>& values) {
  if (values.size() == 1) return scalar_like(b, x, values.front());
  const Type type = b.type(x);  // a copy, because emit() may reallocate the types
  const auto last = static_cast<std::int64_t>(type.shape.size()) - 1;
  return broadcast_along(b, vector_constant(b, type.dtype, values), type.shape, last);
}

Value prepare_inputs(Builder& b, const Model& model, Value inputs) {
  const Builder::Scope scope(b, {"input", model.normalize_place});
  if (model.takes_tokens()) return cast(b, inputs, DType::i32);
  const DType given = b.type(inputs).dtype;
  // f64 are numbers that float32 does not tell apart until they are normalised.
  Value x = given == DType::f64 ? inputs : cast(b, inputs, model.dtype);
  if (given == DType::u8) x = div(b, x, 255.0);
  if (model.normalize) {
    x = sub(b, x, per_channel(b, x, model.normalize->mean));
    x = div(b, x, per_channel(b, x, model.normalize->std));
  }
  return cast(b, x, model.dtype);
}

}  // namespace

bool LayerCall::is_frozen() const {
  if (forward.trained == nullptr) return false;
  bool any = false;
  for (std::size_t i = 0; i < node.parameters.size(); ++i) {
    if (node.parameters[i].is_state) continue;
    if ((*forward.trained)[node.first_parameter + i]) return false;
    any = true;
  }
  return any;
}

Value apply(Builder& b, const Node& node, const Forward& forward, Value x) {
  std::optional<Builder::Rematerialise> rematerialise;
  if (node.remat && forward.training) {
    std::vector<Value> inputs{x};
    if (forward.rows) inputs.push_back(*forward.rows);  // from which random numbers are drawn
    rematerialise.emplace(b, std::move(inputs));
  }
  if (node.is_list()) return apply_in_order(b, node.children, forward, x);
  const Builder::Scope scope(b, {node.name, node.place});
  LayerCall call{b,
                 node,
                 forward,
                 forward.parameters.subspan(node.first_parameter, node.parameters.size()),
                 forward.training,
                 forward.numbers,
                 {},
                 {}};
  if (forward.training && node.draws) {
    call.key = forward.dropout_keys[node.key];
    call.rows = forward.rows;
  }
  return node.apply(call, node.children.empty() && !node.takes_tokens ? cast(b, x, node.compute) : x);
}

Value apply_in_order(Builder& b, std::span<const Node> nodes, const Forward& forward, Value x) {
  for (const Node& node : nodes) x = apply(b, node, forward, x);
  return x;
}

Value apply(Builder& b, const Model& model, const Forward& forward) {
  assert(forward.parameters.size() == model.parameters.size());
  Value x = prepare_inputs(b, model, forward.inputs);
  x = forward.gathers != nullptr ? forward.gathers->apply(forward, x) : apply_in_order(b, model.layers, forward, x);
  // The output is the last layer's: a product there has a result of the model's type.
  const Node& last = *model.nodes().back();
  const Builder::Scope scope(b, {last.name, last.place});
  return cast(b, x, model.dtype);
}

}  // namespace pmaptrain::model
