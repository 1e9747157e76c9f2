// What a layer is: its shapes and parameters, checked once, and the equations it appends.
//
// Each kind of layer is one overload of plan() in a file of its own (dense.cpp, conv.cpp, ...). A new kind adds its
// struct to spec::LayerKind, its row (core/spec/rows_model.cpp) and its overload here; nothing else lists the kinds,
// and without one of the three the program does not compile.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/graph/builder.h"
#include "core/spec/spec.h"

namespace pmaptrain::model {

enum class InitializerKind { zeros, lecun_normal };

struct Initializer {
  InitializerKind kind = InitializerKind::zeros;
  std::int64_t fan_in = 1;  // inputs of one output, for lecun_normal
};

struct Parameter {
  std::string name;  // its path: conv_0.kernel
  Shape shape;
  Initializer initializer;
  Place place;  // of its layer
};

// What a layer's equations may use. `key` (u32[2]) and `rows` (i64[B], each example's position in the sample stream)
// are there in training for the layers that draw random numbers.
struct LayerCall {
  Builder& b;
  std::span<const Value> parameters;  // in the order of PlannedLayer::parameters
  bool training = false;
  std::optional<Value> key = {};
  std::optional<Value> rows = {};
};

struct PlannedLayer {
  std::string name;  // its path: block.conv_0
  std::string kind;  // "conv"
  Place place;
  Shape output;  // of one example
  std::vector<Parameter> parameters;
  bool draws = false;  // takes a dropout key
  // x [B, input...] -> [B, output...]; empty where `layers` are applied one after another.
  std::function<Value(const LayerCall& call, Value x)> apply;
  std::vector<PlannedLayer> layers = {};  // of a nested list; their parameters are not repeated in `parameters`
};

// What plan() is given. Shapes are those of one example.
struct LayerInput {
  const spec::Layer& layer;
  std::string name;  // the layer's path
  Shape shape;
  DType dtype = DType::f32;
  std::vector<Diagnostic>& errors;

  PlannedLayer start() const { return {name, spec::to_string(layer.kind), layer.place, shape, {}, false, {}}; }
  Parameter parameter(const std::string& field, Shape of, Initializer initializer) const {
    return {name + "." + field, std::move(of), initializer, layer.place};
  }
  // "f32[28,28,1]"
  std::string shown() const { return std::string(to_string(dtype)) + to_string(shape); }
  // Reports a mistake at the layer's place.
  std::optional<PlannedLayer> refuse(std::string message, std::string help) const {
    errors.push_back({"config", layer.place, name + " " + std::move(message), std::move(help), {}});
    return std::nullopt;
  }
};

// Nothing where the layer does not fit its input: then it has been reported to `errors`.
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

// The layers of one list, each on what the one before gives. Their paths begin with `prefix`; `shape` is that of an
// example, before and after. False where one does not fit, which has been reported.
bool plan_list(const std::vector<spec::Layer>& list, const std::string& prefix, DType dtype, Shape& shape,
               std::vector<PlannedLayer>& out, std::vector<Diagnostic>& errors);

}  // namespace pmaptrain::model
