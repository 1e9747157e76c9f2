// What tests of models and steps share: small specs, and programs run on all devices by the interpreter.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "core/graph/check.h"
#include "core/graph/program.h"
#include "core/model/batch.h"
#include "core/model/model.h"
#include "core/ops/all.h"
#include "core/runtime/interpreter.h"
#include "core/step/step_program.h"

namespace pmaptrain::testing {

using Numbers = std::vector<double>;

inline std::vector<std::byte> to_bytes(const Numbers& values, DType dtype) {
  std::vector<std::byte> bytes(values.size() * size_of(dtype));
  dispatch(dtype, [&]<class T>() {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const T value = static_cast<T>(values[i]);
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
  return bytes;
}

inline Numbers to_numbers(const std::vector<std::byte>& bytes, DType dtype) {
  Numbers values(bytes.size() / size_of(dtype));
  dispatch(dtype, [&]<class T>() {
    for (std::size_t i = 0; i < values.size(); ++i) {
      T value;
      std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
      values[i] = static_cast<double>(value);
    }
  });
  return values;
}

using Feed = std::map<std::string, Numbers>;

// Feeds numbers of a config.
inline void add_numbers(Feed& feed, const std::vector<model::Number>& numbers) {
  for (const model::Number& number : numbers) feed[number.name] = {number.value};
}

// Runs a program. Inputs that vary over axes are given whole, the devices' parts in order; state that is not given
// begins as a run does, and everything else as zeros. Results are device 0's, which is everybody's where the type says
// so: outputs by name, and what replaces an input by the input's name. Parts of buckets are fed and returned each.
inline Feed run(const Program& program, const Feed& feed) {
  std::map<std::string, PerDevice> inputs;
  const std::int64_t devices = program.mesh.devices();
  const std::vector<Variable> variables = variables_of(program);
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const Input& input = program.inputs[i];
    const Type& type = program.type(input.value);
    const std::size_t size = bytes(type);
    const bool flag = input.group == Group::state && type.dtype == DType::boolean;
    std::vector<std::byte> whole(size * static_cast<std::size_t>(program.mesh.group_size(type.varying)),
                                 std::byte{flag});
    for (const Variable& variable : variables) {
      const auto given = feed.find(std::string(variable.name));
      if (variable.input != i || given == feed.end()) continue;
      const std::vector<std::byte> elements = to_bytes(given->second, type.dtype);
      if (!input.parts.empty() && elements.size() == bytes(variable.type)) {
        std::copy(elements.begin(), elements.end(), whole.begin() + static_cast<std::ptrdiff_t>(variable.begin));
      } else {
        whole = elements;
      }
    }
    if (whole.size() != size * static_cast<std::size_t>(program.mesh.group_size(type.varying))) {
      throw std::logic_error("the test feeds " + input.name + " with the wrong number of values");
    }
    PerDevice parts;
    for (std::int64_t device = 0; device < devices; ++device) {
      const auto first = static_cast<std::ptrdiff_t>(size) * program.mesh.position(device, type.varying);
      parts.emplace_back(whole.begin() + first, whole.begin() + first + static_cast<std::ptrdiff_t>(size));
    }
    inputs[input.name] = std::move(parts);
  }
  const InterpreterResult result = interpret(program, inputs);
  Feed values;
  for (const Variable& variable : variables) {
    const Input& input = program.inputs[variable.input];
    if (!input.next) continue;
    const std::vector<std::byte>& whole = result.updates.at(input.name).front();
    const auto first = whole.begin() + static_cast<std::ptrdiff_t>(variable.begin);
    values[std::string(variable.name)] =
        to_numbers({first, first + static_cast<std::ptrdiff_t>(bytes(variable.type))}, variable.type.dtype);
  }
  for (const Output& output : program.outputs) {
    values[output.name] = to_numbers(result.outputs.at(output.name).front(), program.type(output.value).dtype);
  }
  return values;
}

inline spec::Layer layer(std::string name, spec::LayerKind kind) {
  return {std::move(name), std::move(kind), Place{"net.yaml", 7, 5, 4, "  - dense: 4"}};
}

namespace metric = spec::metric;
inline constexpr metric::Average each = metric::Average::none;

// Three features, a hidden layer of four, three classes.
inline spec::Spec classifier(Mesh mesh) {
  spec::Spec spec;
  spec.name = "classifier";
  spec.mesh.mesh = mesh;
  spec.data.axes = mesh.all();
  spec.model.layers = {layer("dense_0", spec::Dense{4}), layer("tanh_0", spec::Tanh{}), layer("head", spec::Dense{3})};
  spec.metrics = {spec::Metric{metric::Accuracy{}}};
  spec.optimizer = {spec::Sgd{}, 1.0, {}, {}};
  return spec;
}

// The optimizer of `spec` for batches of this shape; a schedule ends after `steps`.
inline train::Optimizer optimizer_of(const spec::Spec& spec, const model::Model& model, model::BatchShape batch = {},
                                     std::int64_t steps = 20) {
  data::BatchPlan plan;
  plan.global = batch.rows_per_device * spec.mesh.mesh.devices();
  plan.steps_per_epoch = 5;
  return train::make_optimizer(spec.optimizer, model, plan, steps);
}

inline const data::Field labels{DType::i32, {}};

// A model of these layers; its loss stands at line 9.
inline spec::Spec network(std::vector<spec::Layer> layers, spec::Loss loss = spec::SoftmaxCrossEntropy{}) {
  spec::Spec spec;
  spec.model.layers = std::move(layers);
  spec.loss = loss;
  spec.loss_place = {"net.yaml", 9, 7, 4, "loss: x"};
  spec.optimizer.learning_rate = 1.0;
  return spec;
}

// All that make_model says, as "message | help" lines.
// Model::Initializer::scale of a kernel that is LeCun normal, the default.
inline double lecun_scale(double fan_in) { return std::sqrt(1 / fan_in) / 0.87962566103423978; }

inline std::string refusal(const spec::Spec& spec, const data::Field& input, const data::Field& target) {
  try {
    model::make_model(spec, input, target);
  } catch (const Error& error) {
    std::string text;
    for (const Diagnostic& diagnostic : error.diagnostics()) {
      text += (text.empty() ? "" : "\n") + diagnostic.message + " | " + diagnostic.help;
    }
    return text;
  }
  return "accepted";
}

// What the layers give for `inputs` (values of `input` for each row), on one device.
inline Feed forward(const model::Model& model, const Numbers& inputs, Feed feed = {}, bool training = false) {
  Program program;
  Builder b(program, all_ops());
  std::vector<Value> parameters, keys;
  for (const model::Parameter& parameter : model.parameters) {
    parameters.push_back(b.input(Group::params, parameter.name, {model.dtype, parameter.shape, {}}));
  }
  Shape shape{static_cast<std::int64_t>(inputs.size()) / numel(model.input.shape)};
  const Shape rows = shape;
  shape.insert(shape.end(), model.input.shape.begin(), model.input.shape.end());
  const Value x = b.input(Group::batch, "x", {model.input.dtype, shape, {}});
  const Value row = b.input(Group::batch, "row", {DType::i64, rows, {}});
  for (const std::string& name : model.drawing_layers()) {
    keys.push_back(b.input(Group::hyper, name, {DType::u32, {2}, {}}));
  }
  const std::vector<model::Number> numbers = model.numbers();
  const std::vector<Value> values = model::declare_numbers(b, numbers);
  b.output("y", model::apply(b, model, {x, parameters, training, keys, row, {numbers, values}}));
  check(program);
  add_numbers(feed, numbers);
  feed["x"] = inputs;
  return run(program, feed);
}

}  // namespace pmaptrain::testing
