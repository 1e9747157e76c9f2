// What a layer is: its shapes and parameters, checked once, and the equations it appends.
//
// Each kind of layer is one overload of plan() in a file of its own (dense.cpp, conv.cpp, ...). A new kind adds its
// struct to spec::LayerKind and its overload here; nothing else in this folder lists the kinds.
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
  std::string name;
  std::string kind;  // "conv"
  Place place;
  Shape output;  // of one example
  std::vector<Parameter> parameters;
  bool draws = false;  // takes a dropout key
  // x [B, input...] -> [B, output...]
  std::function<Value(const LayerCall& call, Value x)> apply;
};

// What plan() is given. Shapes are those of one example.
struct LayerInput {
  const spec::Layer& layer;
  Shape shape;
  DType dtype = DType::f32;
  std::vector<Diagnostic>& errors;

  PlannedLayer start() const { return {layer.name, spec::kind_name(layer.kind), layer.place, shape, {}, false, {}}; }
  Parameter parameter(const std::string& field, Shape of, Initializer initializer) const {
    return {layer.name + "." + field, std::move(of), initializer, layer.place};
  }
  // "f32[28,28,1]"
  std::string shown() const { return std::string(to_string(dtype)) + to_string(shape); }
  // Reports a mistake at the layer's place.
  std::optional<PlannedLayer> refuse(std::string message, std::string help) const {
    errors.push_back({"config", layer.place, layer.name + " " + std::move(message), std::move(help), {}});
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

}  // namespace pmaptrain::model
