// Elementwise layers: no parameters, any shape.
#include <cmath>
#include <numbers>

#include "core/model/arithmetic.h"
#include "core/model/layers.h"

namespace pmaptrain::model {
namespace {

// If values are stored in a narrow type, `function` is computed in the type of the parameters.
PlannedLayer elementwise(const LayerInput& in, std::function<Value(Builder&, Value)> function) {
  PlannedLayer layer = in.start();
  layer.apply = [function = std::move(function), storage = in.precision.storage](const LayerCall& call, Value x) {
    return cast(call.b, function(call.b, cast(call.b, x, storage)), call.b.type(x).dtype);
  };
  return layer;
}

}  // namespace

// Exact in every type.
std::optional<PlannedLayer> plan(const spec::Relu&, const LayerInput& in) {
  PlannedLayer layer = in.start_as_given();
  layer.apply = [](const LayerCall& call, Value x) { return call.b.emit(ops::Relu{}, {x}); };
  return layer;
}

std::optional<PlannedLayer> plan(const spec::Tanh&, const LayerInput& in) {
  return elementwise(in, [](Builder& b, Value x) { return b.emit(ops::Tanh{}, {x}); });
}

// x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))
std::optional<PlannedLayer> plan(const spec::Gelu&, const LayerInput& in) {
  return elementwise(in, [](Builder& b, Value x) {
    const Value cube = mul(b, mul(b, x, x), x);
    const Value inner = mul(b, add(b, x, mul(b, cube, 0.044715)), std::sqrt(2.0 / std::numbers::pi));
    const Value half = mul(b, x, 0.5);
    return mul(b, half, add(b, b.emit(ops::Tanh{}, {inner}), 1.0));
  });
}

std::optional<PlannedLayer> plan(const spec::Sigmoid&, const LayerInput& in) { return elementwise(in, sigmoid); }

std::optional<PlannedLayer> plan(const spec::Silu&, const LayerInput& in) {
  return elementwise(in, [](Builder& b, Value x) { return mul(b, x, sigmoid(b, x)); });
}

std::optional<PlannedLayer> plan(const spec::Softmax&, const LayerInput& in) {
  if (in.shape.empty()) {
    return in.refuse("takes features [N]; its input is " + in.shown(),
                     "add flatten before it, which gives the shape [1]");
  }
  return elementwise(in, softmax);
}

std::optional<PlannedLayer> plan(const spec::LeakyRelu& leaky, const LayerInput& in) {
  return elementwise(in, [slope = leaky.negative_slope](Builder& b, Value x) {
    const Value above = b.emit(ops::Ge{}, {x, scalar_like(b, x, 0.0)});
    return select(b, above, x, mul(b, x, slope));
  });
}

// expm1 is applied to min(x, 0), because it and its cotangent could overflow for large x.
std::optional<PlannedLayer> plan(const spec::Elu& elu, const LayerInput& in) {
  return elementwise(in, [alpha = elu.alpha](Builder& b, Value x) {
    const Value zero = scalar_like(b, x, 0.0);
    const Value above = b.emit(ops::Gt{}, {x, zero});
    const Value below = select(b, above, zero, x);
    return select(b, above, x, mul(b, b.emit(ops::Expm1{}, {below}), alpha));
  });
}

// max(x, 0) + log(1 + exp(-|x|))
std::optional<PlannedLayer> plan(const spec::Softplus&, const LayerInput& in) { return elementwise(in, softplus); }

}  // namespace pmaptrain::model
