// The forward pass: scaling of u8 inputs to [0, 1], normalisation, layers.
#include <cassert>

#include "core/model/arithmetic.h"
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
  const bool bytes = b.type(inputs).dtype == DType::u8;
  Value x = cast(b, inputs, model.dtype);
  if (bytes) x = div(b, x, 255.0);
  if (model.normalize) {
    x = sub(b, x, per_channel(b, x, model.normalize->mean));
    x = div(b, x, per_channel(b, x, model.normalize->std));
  }
  return x;
}

}  // namespace

Value apply(Builder& b, const Model& model, const Forward& forward) {
  assert(forward.parameters.size() == model.parameters.size());
  Value x = prepare_inputs(b, model, forward.inputs);
  std::size_t parameter = 0, key = 0;
  const std::vector<const PlannedLayer*> layers = model.leaves();
  for (const PlannedLayer* layer : layers) {
    const Builder::Scope scope(b, {layer->name, layer->place});
    LayerCall call{
        b, forward.parameters.subspan(parameter, layer->parameters.size()), forward.training, forward.numbers, {}, {}};
    if (forward.training && layer->draws) {
      call.key = forward.dropout_keys[key++];
      call.rows = forward.rows;
    }
    x = layer->apply(call, cast(b, x, layer->compute));
    // The output is the last layer's: a product there has a result of the model's type.
    if (layer == layers.back()) x = cast(b, x, model.dtype);
    parameter += layer->parameters.size();
  }
  return x;
}

}  // namespace pmaptrain::model
