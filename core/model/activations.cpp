// Elementwise layers: no parameters, any shape.
#include <cmath>
#include <numbers>

#include "core/equations/arithmetic.h"
#include "core/model/layers.h"

namespace pmaptrain::model {
namespace {

// If values are stored in a narrow type, `function` is computed in the type of the parameters.
Node elementwise(const LayerInput& in, std::function<Value(Builder&, Value)> function) {
  Node layer = in.start();
  layer.apply = [function = std::move(function), storage = in.precision.storage](const LayerCall& call, Value x) {
    return cast(call.b, function(call.b, cast(call.b, x, storage)), call.b.type(x).dtype);
  };
  return layer;
}

}  // namespace

// Exact in every type.
std::optional<Node> plan(const spec::Relu&, const LayerInput& in) {
  Node layer = in.start_with_input_dtype();
  layer.apply = [](const LayerCall& call, Value x) { return call.b.emit(ops::Relu{}, {x}); };
  return layer;
}

std::optional<Node> plan(const spec::Tanh&, const LayerInput& in) {
  return elementwise(in, [](Builder& b, Value x) { return b.emit(ops::Tanh{}, {x}); });
}

// x/2 · (1 + erf(x/√2)), or x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))).
std::optional<Node> plan(const spec::Gelu& gelu, const LayerInput& in) {
  if (gelu.approximate == spec::GeluFunction::exact) {
    return elementwise(in, [](Builder& b, Value x) {
      const Value half = mul(b, x, 0.5);
      return mul(b, half, add(b, b.emit(ops::Erf{}, {mul(b, x, std::sqrt(0.5))}), 1.0));
    });
  }
  return elementwise(in, [](Builder& b, Value x) {
    const Value cube = mul(b, mul(b, x, x), x);
    const Value inner = mul(b, add(b, x, mul(b, cube, 0.044715)), std::sqrt(2.0 / std::numbers::pi));
    const Value half = mul(b, x, 0.5);
    return mul(b, half, add(b, b.emit(ops::Tanh{}, {inner}), 1.0));
  });
}

std::optional<Node> plan(const spec::Sigmoid&, const LayerInput& in) { return elementwise(in, sigmoid); }

std::optional<Node> plan(const spec::Silu&, const LayerInput& in) {
  return elementwise(in, [](Builder& b, Value x) { return mul(b, x, sigmoid(b, x)); });
}

std::optional<Node> plan(const spec::Softmax&, const LayerInput& in) {
  if (in.shape.empty()) {
    return in.refuse("takes features [N]; its input is " + in.shown(),
                     "add flatten before it, which gives the shape [1]");
  }
  return elementwise(in, softmax);
}

std::optional<Node> plan(const spec::LeakyRelu& leaky, const LayerInput& in) {
  return elementwise(in, [slope = leaky.negative_slope](Builder& b, Value x) { return leaky_relu(b, x, slope); });
}

std::optional<Node> plan(const spec::Elu& elu, const LayerInput& in) {
  return elementwise(in, [alpha = elu.alpha](Builder& b, Value x) { return model::elu(b, x, alpha); });
}

// max(x, 0) + log(1 + exp(-|x|))
std::optional<Node> plan(const spec::Softplus&, const LayerInput& in) { return elementwise(in, softplus); }

}  // namespace pmaptrain::model
