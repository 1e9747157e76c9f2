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

// Padding behind sequences becomes zero, so that what it holds reaches no sum.
Value prepare_inputs(Builder& b, const Model& model, Value inputs, std::optional<Value> lengths) {
  const Builder::Scope scope(b, {"input", model.normalize_place});
  const auto without_padding = [&](Value x) { return lengths ? inside_or(b, *lengths, x, 0) : x; };
  if (model.takes_tokens()) return without_padding(cast(b, inputs, DType::i32));
  const DType given = b.type(inputs).dtype;
  // f64 are numbers that float32 does not tell apart until they are normalised.
  Value x = given == DType::f64 ? inputs : cast(b, inputs, model.dtype);
  if (given == DType::u8) x = div(b, x, 255.0);
  if (model.normalize) {
    x = sub(b, x, per_channel(b, x, model.normalize->mean));
    x = div(b, x, per_channel(b, x, model.normalize->std));
  }
  return without_padding(cast(b, x, model.dtype));
}

}  // namespace

Value apply(Builder& b, const Model& model, const Forward& forward, Gathers* gathers) {
  assert(forward.parameters.size() == model.parameters.size());
  Value x = prepare_inputs(b, model, forward.inputs, forward.lengths);
  x = gathers != nullptr ? gathers->apply(forward, x) : apply_in_order(b, model.layers, forward, x);
  // The output is the last layer's: a product there has a result of the model's type.
  const Node& last = *model.nodes().back();
  const Builder::Scope scope(b, {last.name, last.place});
  return cast(b, x, model.dtype);
}

}  // namespace pmaptrain::model
