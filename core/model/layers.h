// Layers: their checked shapes and parameters, and the equations that they append.
//
// Each kind of layer is one overload of plan() and one of to_onnx() in a file of its own (dense.cpp, conv.cpp, ...). A
// new kind needs an alternative of spec::LayerKind, a row (core/spec/rows/model.cpp) and both overloads. If one of
// these is missing, the program does not compile.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/graph/builder.h"
#include "core/model/numbers.h"
#include "core/onnx/graph.h"
#include "core/spec/spec.h"

namespace pmaptrain::model {

enum class InitializerKind { zeros, lecun_normal };

struct Initializer {
  InitializerKind kind = InitializerKind::zeros;
  std::int64_t fan_in = 1;  // for lecun_normal: the number of inputs of one output
};

// How PyTorch stores a parameter (layout.h).
struct TorchParameter {
  std::string field = {};               // "weight" for a kernel; empty: the name that it has here
  std::vector<std::int64_t> axes = {};  // dimension i there is dimension axes[i] here; empty: the same order
};

struct Parameter {
  std::string name;  // its path: conv_0.kernel
  Shape shape;
  Initializer initializer;
  Place place;  // of its layer
  TorchParameter torch = {};
  Shape image = {};  // [height,width,channels] if the first dimension runs over a flattened image
};

// The arguments of PlannedLayer::apply besides x. In training, layers that draw random numbers also get `key` (u32[2])
// and `rows` (i64[B], the position of each example in the sample stream).
struct LayerCall {
  Builder& b;
  std::span<const Value> parameters;  // in the order of PlannedLayer::parameters
  bool training = false;
  const Numbers& numbers;  // in training
  std::optional<Value> key = {};
  std::optional<Value> rows = {};
};

// Element types. Products accumulate in f32 whatever their operands are.
struct Precision {
  DType storage = DType::f32;  // of parameters, gradients, the loss, and a layer's sums and nonlinear functions
  DType compute = DType::f32;  // of the operands of products, and of activations and their cotangents
};

struct PlannedLayer;

// The arguments of PlannedLayer::to_onnx besides x.
struct OnnxCall {
  onnx::Graph& graph;
  const PlannedLayer& layer;
  const Shape& input;                                      // of one example
  std::span<const std::span<const std::byte>> parameters;  // f32, in the order of PlannedLayer::parameters

  // Adds a parameter to the graph as an initializer, and returns its name: with the dimensions as here, or in PyTorch's
  // order.
  std::string parameter(std::size_t index) const;
  std::string torch_parameter(std::size_t index) const;
};

struct PlannedLayer {
  std::string name;  // its path: block.conv_0
  std::string kind;  // "conv"
  Place place;
  DType compute = DType::f32;  // of its input and output
  Shape output;                // of one example
  std::vector<Parameter> parameters;
  bool draws = false;                // draws random numbers in training
  std::vector<Number> numbers = {};  // the numbers that it reads in training
  // x [B, input...] -> [B, output...], both of `compute`; empty for a nested list.
  std::function<Value(const LayerCall& call, Value x)> apply;
  std::vector<PlannedLayer> layers = {};  // of a nested list, applied in order; `parameters` is then empty
  Shape image = {};  // [height,width,channels] if `output` is an image that was flattened to one dimension
  // Appends the nodes that compute in f32 what `apply` computes in an evaluation; empty for a nested list.
  std::function<onnx::Value(const OnnxCall& call, const onnx::Value& x)> to_onnx = {};
};

// The type and the shape of a value between two layers.
struct Activation {
  DType dtype = DType::f32;
  Shape shape;  // of one example
  Shape image;  // as PlannedLayer::image
};

// The arguments of plan(). Shapes are those of one example.
struct LayerInput {
  const spec::Layer& layer;
  std::string name;  // the layer's path
  Shape shape;
  Precision precision;
  DType input_dtype;  // the element type of the previous layer's output
  std::vector<Diagnostic>& errors;
  Shape image = {};  // PlannedLayer::image of the previous layer

  // A layer with the properties that all kinds have in common. Its `output` is still the shape of the input.
  PlannedLayer start() const {
    return {name, spec::to_string(layer.kind), layer.place, precision.compute, shape, {}, false, {}, {}, {}, image};
  }
  // The same for a layer that only moves or selects elements: with mixed precision, these keep the element type of the
  // previous layer's output.
  PlannedLayer start_with_input_dtype() const {
    PlannedLayer planned = start();
    if (precision.compute != precision.storage) planned.compute = input_dtype;
    return planned;
  }
  Parameter parameter(const std::string& field, Shape of, Initializer initializer) const {
    return {name + "." + field, std::move(of), initializer, layer.place};
  }
  // A kernel, whose dimensions PyTorch has in the order `axes`.
  Parameter kernel(Shape of, std::int64_t fan_in, std::vector<std::int64_t> axes) const {
    Parameter made = parameter("kernel", std::move(of), {InitializerKind::lecun_normal, fan_in});
    made.torch = {"weight", std::move(axes)};
    return made;
  }
  // "f32[28,28,1]"
  std::string shown() const { return std::string(to_string(precision.storage)) + to_string(shape); }
  // Reports an error at the place of the layer.
  std::optional<PlannedLayer> refuse(std::string message, std::string help) const {
    errors.push_back({"config", layer.place, name + " " + std::move(message), std::move(help), {}});
    return std::nullopt;
  }
};

// Returns nothing if the layer does not fit its input, after reporting that to `errors`.
std::optional<PlannedLayer> plan(const spec::Dense& dense, const LayerInput& in);
std::optional<PlannedLayer> plan(const spec::Conv& conv, const LayerInput& in);
std::optional<PlannedLayer> plan(const spec::MaxPool& pool, const LayerInput& in);
std::optional<PlannedLayer> plan(const spec::AvgPool& pool, const LayerInput& in);
std::optional<PlannedLayer> plan(const spec::GlobalAvgPool& pool, const LayerInput& in);
std::optional<PlannedLayer> plan(const spec::Reshape& reshape, const LayerInput& in);
std::optional<PlannedLayer> plan(const spec::Layers& layers, const LayerInput& in);
std::optional<PlannedLayer> plan(const spec::Flatten& flatten, const LayerInput& in);
std::optional<PlannedLayer> plan(const spec::Dropout& dropout, const LayerInput& in);
std::optional<PlannedLayer> plan(const spec::Relu& relu, const LayerInput& in);
std::optional<PlannedLayer> plan(const spec::Tanh& tanh, const LayerInput& in);
std::optional<PlannedLayer> plan(const spec::Gelu& gelu, const LayerInput& in);
std::optional<PlannedLayer> plan(const spec::Sigmoid& sigmoid, const LayerInput& in);
std::optional<PlannedLayer> plan(const spec::Silu& silu, const LayerInput& in);
std::optional<PlannedLayer> plan(const spec::Softmax& softmax, const LayerInput& in);
std::optional<PlannedLayer> plan(const spec::LeakyRelu& leaky, const LayerInput& in);
std::optional<PlannedLayer> plan(const spec::Elu& elu, const LayerInput& in);
std::optional<PlannedLayer> plan(const spec::Softplus& softplus, const LayerInput& in);

// PlannedLayer::to_onnx, for a layer that plan() accepted.
onnx::Value to_onnx(const spec::Dense& layer, const OnnxCall& call, const onnx::Value& x);
onnx::Value to_onnx(const spec::Conv& layer, const OnnxCall& call, const onnx::Value& x);
onnx::Value to_onnx(const spec::MaxPool& layer, const OnnxCall& call, const onnx::Value& x);
onnx::Value to_onnx(const spec::AvgPool& layer, const OnnxCall& call, const onnx::Value& x);
onnx::Value to_onnx(const spec::GlobalAvgPool& layer, const OnnxCall& call, const onnx::Value& x);
onnx::Value to_onnx(const spec::Reshape& layer, const OnnxCall& call, const onnx::Value& x);
onnx::Value to_onnx(const spec::Flatten& layer, const OnnxCall& call, const onnx::Value& x);
onnx::Value to_onnx(const spec::Dropout& layer, const OnnxCall& call, const onnx::Value& x);
onnx::Value to_onnx(const spec::Relu& layer, const OnnxCall& call, const onnx::Value& x);
onnx::Value to_onnx(const spec::Tanh& layer, const OnnxCall& call, const onnx::Value& x);
onnx::Value to_onnx(const spec::Gelu& layer, const OnnxCall& call, const onnx::Value& x);
onnx::Value to_onnx(const spec::Sigmoid& layer, const OnnxCall& call, const onnx::Value& x);
onnx::Value to_onnx(const spec::Silu& layer, const OnnxCall& call, const onnx::Value& x);
onnx::Value to_onnx(const spec::Softmax& layer, const OnnxCall& call, const onnx::Value& x);
onnx::Value to_onnx(const spec::LeakyRelu& layer, const OnnxCall& call, const onnx::Value& x);
onnx::Value to_onnx(const spec::Elu& layer, const OnnxCall& call, const onnx::Value& x);
onnx::Value to_onnx(const spec::Softplus& layer, const OnnxCall& call, const onnx::Value& x);

// Plans the layers of one list in order. Their paths begin with `prefix`. `at` describes the input of the list, and on
// return its output. Returns false if a layer does not fit, after reporting that to `errors`.
bool plan_list(const std::vector<spec::Layer>& list, const std::string& prefix, Precision precision, Activation& at,
               std::vector<PlannedLayer>& out, std::vector<Diagnostic>& errors);

}  // namespace pmaptrain::model
