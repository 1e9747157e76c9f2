// Layers: their checked shapes and parameters, and the equations that they append.
//
// Each kind of layer is one overload of plan() in a file of its own (dense.cpp, conv.cpp, ...). A new kind needs an
// alternative of spec::LayerKind, a row (core/spec/rows/model.cpp) and an overload here. If one of the three is
// missing, the program does not compile.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/graph/builder.h"
#include "core/model/numbers.h"
#include "core/spec/spec.h"

namespace pmaptrain::model {

enum class InitializerKind { zeros, lecun_normal };

struct Initializer {
  InitializerKind kind = InitializerKind::zeros;
  std::int64_t fan_in = 1;  // for lecun_normal: the number of inputs of one output
};

struct Parameter {
  std::string name;  // its path: conv_0.kernel
  Shape shape;
  Initializer initializer;
  Place place;  // of its layer
};

// The inputs of PlannedLayer::apply besides x. In training, layers that draw random numbers also get `key` (u32[2]) and
// `rows` (i64[B], the position of each example in the sample stream).
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
  DType storage =
      DType::f32;  // of parameters and gradients, of the loss, and of a layer's sums and nonlinear functions
  DType compute = DType::f32;  // of the operands of products, of activations and their cotangents
};

struct PlannedLayer {
  std::string name;  // its path: block.conv_0
  std::string kind;  // "conv"
  Place place;
  DType compute = DType::f32;  // of its input and output
  Shape output;                // of one example
  std::vector<Parameter> parameters;
  bool draws = false;                // draws random numbers in training
  std::vector<Number> numbers = {};  // that its training reads
  // x [B, input...] -> [B, output...], both of `compute`; empty for a nested list.
  std::function<Value(const LayerCall& call, Value x)> apply;
  std::vector<PlannedLayer> layers = {};  // of a nested list, applied in order; `parameters` is then empty
};

// The arguments of plan(). Shapes are those of one example.
struct LayerInput {
  const spec::Layer& layer;
  std::string name;  // the layer's path
  Shape shape;
  Precision precision;
  DType given;  // of the layer before
  std::vector<Diagnostic>& errors;

  PlannedLayer start() const {
    return {name, spec::to_string(layer.kind), layer.place, precision.compute, shape, {}, false, {}, {}};
  }
  // For a layer that moves or selects elements, which keep their type under mixed precision.
  PlannedLayer start_as_given() const {
    PlannedLayer planned = start();
    if (precision.compute != precision.storage) planned.compute = given;
    return planned;
  }
  Parameter parameter(const std::string& field, Shape of, Initializer initializer) const {
    return {name + "." + field, std::move(of), initializer, layer.place};
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

// Plans the layers of one list in order. Their paths begin with `prefix`; `given` and `shape` are the element type and
// the shape of an example before the list, and after it on return. Returns false if a layer does not fit, after
// reporting that to `errors`.
bool plan_list(const std::vector<spec::Layer>& list, const std::string& prefix, Precision precision, DType& given,
               Shape& shape, std::vector<PlannedLayer>& out, std::vector<Diagnostic>& errors);

}  // namespace pmaptrain::model
