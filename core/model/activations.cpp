// Elementwise layers: no parameters, any shape.
#include <cmath>
#include <numbers>

#include "core/model/arithmetic.h"
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

onnx::Value elementwise_node(const OnnxCall& call, const onnx::Value& x, std::string op,
                             onnx::Attributes attributes = {}) {
  return {call.graph.node(std::move(op), {x.name}, std::move(attributes)), x.channels_first};
}

}  // namespace

// Exact in every type.
std::optional<Node> plan(const spec::Relu&, const LayerInput& in) {
  Node layer = in.start_with_input_dtype();
  layer.apply = [](const LayerCall& call, Value x) { return call.b.emit(ops::Relu{}, {x}); };
  return layer;
}
onnx::Value to_onnx(const spec::Relu&, const OnnxCall& call, const onnx::Value& x) {
  return elementwise_node(call, x, "Relu");
}

std::optional<Node> plan(const spec::Tanh&, const LayerInput& in) {
  return elementwise(in, [](Builder& b, Value x) { return b.emit(ops::Tanh{}, {x}); });
}
onnx::Value to_onnx(const spec::Tanh&, const OnnxCall& call, const onnx::Value& x) {
  return elementwise_node(call, x, "Tanh");
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
// The operator set has no Gelu.
onnx::Value to_onnx(const spec::Gelu& gelu, const OnnxCall& call, const onnx::Value& x) {
  onnx::Graph& graph = call.graph;
  const auto times = [&](const std::string& a, const std::string& b) { return graph.node("Mul", {a, b}); };
  std::string function;
  if (gelu.approximate == spec::GeluFunction::exact) {
    function = graph.node("Erf", {times(x.name, graph.number(std::sqrt(0.5)))});
  } else {
    const std::string cube = times(times(x.name, x.name), x.name);
    const std::string sum = graph.node("Add", {x.name, times(cube, graph.number(0.044715))});
    function = graph.node("Tanh", {times(sum, graph.number(std::sqrt(2.0 / std::numbers::pi)))});
  }
  const std::string half = times(x.name, graph.number(0.5));
  return {times(half, graph.node("Add", {function, graph.number(1.0)})), x.channels_first};
}

std::optional<Node> plan(const spec::Sigmoid&, const LayerInput& in) { return elementwise(in, sigmoid); }
onnx::Value to_onnx(const spec::Sigmoid&, const OnnxCall& call, const onnx::Value& x) {
  return elementwise_node(call, x, "Sigmoid");
}

std::optional<Node> plan(const spec::Silu&, const LayerInput& in) {
  return elementwise(in, [](Builder& b, Value x) { return mul(b, x, sigmoid(b, x)); });
}
onnx::Value to_onnx(const spec::Silu&, const OnnxCall& call, const onnx::Value& x) {
  return {call.graph.node("Mul", {x.name, call.graph.node("Sigmoid", {x.name})}), x.channels_first};
}

std::optional<Node> plan(const spec::Softmax&, const LayerInput& in) {
  if (in.shape.empty()) {
    return in.refuse("takes features [N]; its input is " + in.shown(),
                     "add flatten before it, which gives the shape [1]");
  }
  return elementwise(in, softmax);
}
onnx::Value to_onnx(const spec::Softmax&, const OnnxCall& call, const onnx::Value& x) {
  return {call.graph.node("Softmax", {call.graph.channels_last(x)}, {{"axis", std::int64_t{-1}}})};
}

std::optional<Node> plan(const spec::LeakyRelu& leaky, const LayerInput& in) {
  return elementwise(in, [slope = leaky.negative_slope](Builder& b, Value x) {
    const Value above = b.emit(ops::Ge{}, {x, scalar_like(b, x, 0.0)});
    return select(b, above, x, mul(b, x, slope));
  });
}
onnx::Value to_onnx(const spec::LeakyRelu& leaky, const OnnxCall& call, const onnx::Value& x) {
  return elementwise_node(call, x, "LeakyRelu", {{"alpha", static_cast<float>(leaky.negative_slope)}});
}

// expm1 is applied to min(x, 0), because it and its cotangent could overflow for large x.
std::optional<Node> plan(const spec::Elu& elu, const LayerInput& in) {
  return elementwise(in, [alpha = elu.alpha](Builder& b, Value x) {
    const Value zero = scalar_like(b, x, 0.0);
    const Value above = b.emit(ops::Gt{}, {x, zero});
    const Value below = select(b, above, zero, x);
    return select(b, above, x, mul(b, b.emit(ops::Expm1{}, {below}), alpha));
  });
}
onnx::Value to_onnx(const spec::Elu& elu, const OnnxCall& call, const onnx::Value& x) {
  return elementwise_node(call, x, "Elu", {{"alpha", static_cast<float>(elu.alpha)}});
}

// max(x, 0) + log(1 + exp(-|x|))
std::optional<Node> plan(const spec::Softplus&, const LayerInput& in) { return elementwise(in, softplus); }
onnx::Value to_onnx(const spec::Softplus&, const OnnxCall& call, const onnx::Value& x) {
  return elementwise_node(call, x, "Softplus");
}

}  // namespace pmaptrain::model
