// What tests of models and steps share: small networks, and programs run on all devices by the interpreter.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "core/graph/check.h"
#include "core/graph/program.h"
#include "core/layers/activations.h"
#include "core/layers/dense.h"
#include "core/losses/softmax_cross_entropy.h"
#include "core/metrics/accuracy.h"
#include "core/model/batch.h"
#include "core/model/model.h"
#include "core/ops/all.h"
#include "core/optimizers/sgd.h"
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
inline void add_numbers(Feed& feed, const std::vector<equations::Number>& numbers) {
  for (const equations::Number& number : numbers) feed[number.name] = {number.value};
}

// Moves the elements of a variable between `whole` and the local arrays of its input, by device: to those of all
// devices that have them, or from those of the first ones.
inline void move_variable(const Program& program, const Variable& variable, std::vector<std::byte>& whole,
                          PerDevice& locals, bool to_locals) {
  const std::size_t size = size_of(variable.type.dtype);
  for (const StridedCopy& copy : copies_of(program, variable, 0, numel(variable.type))) {
    for (std::int64_t device = 0; device < program.mesh.devices(); ++device) {
      const AxisSet axes = variable.divided;
      if (program.mesh.position(device, axes) != program.mesh.position(copy.device, axes)) continue;
      if (!to_locals && device != copy.device) continue;
      for (std::int64_t i = 0; i < copy.times; ++i) {
        std::byte* const at = &whole[static_cast<std::size_t>(copy.logical + i * copy.stride) * size];
        std::byte* const local = &locals[static_cast<std::size_t>(device)]
                                        [static_cast<std::size_t>(copy.local + i * copy.local_stride) * size];
        std::memcpy(to_locals ? local : at, to_locals ? at : local, static_cast<std::size_t>(copy.run) * size);
      }
    }
  }
}

// Runs a program. Variables are fed and returned whole, each part of a bucket by itself; one that varies all the same
// is fed as its instances in order. State that is not given begins as a run does, and everything else as zeros. Results
// are device 0's, which is everybody's where the type says so: outputs by name, and what replaces a variable by its
// name.
inline Feed results_of(const Program& program, const Feed& feed) {
  std::map<std::string, PerDevice> inputs;
  const auto devices = static_cast<std::size_t>(program.mesh.devices());
  const std::vector<Variable> variables = variables_of(program);
  for (const Input& input : program.inputs) {
    const Type& type = program.type(input.value);
    const bool flag = input.group == Group::state && type.dtype == DType::boolean;
    inputs[input.name].assign(devices, std::vector<std::byte>(bytes(type), std::byte{flag}));
  }
  for (const Variable& variable : variables) {
    const auto given = feed.find(std::string(variable.name));
    if (given == feed.end()) continue;
    PerDevice& locals = inputs.at(program.inputs[variable.input].name);
    std::vector<std::byte> elements = to_bytes(given->second, variable.type.dtype);
    const std::size_t size = bytes(variable.type);
    const AxisSet axes = variable.type.varying;
    if (elements.size() != size * static_cast<std::size_t>(program.mesh.group_size(axes))) {
      throw std::logic_error("the test feeds " + std::string(variable.name) + " with the wrong number of values");
    }
    if (axes.empty()) {
      move_variable(program, variable, elements, locals, true);
      continue;
    }
    for (std::size_t device = 0; device < devices; ++device) {
      const auto first = elements.begin() + static_cast<std::ptrdiff_t>(size) *
                                                program.mesh.position(static_cast<std::int64_t>(device), axes);
      locals[device].assign(first, first + static_cast<std::ptrdiff_t>(size));
    }
  }
  const InterpreterResult result = interpret(program, inputs);
  Feed values;
  for (const Variable& variable : variables) {
    const Input& input = program.inputs[variable.input];
    if (!input.next) continue;
    std::vector<std::byte> whole(bytes(variable.type));
    PerDevice locals = result.updates.at(input.name);
    move_variable(program, variable, whole, locals, false);
    values[std::string(variable.name)] = to_numbers(whole, variable.type.dtype);
  }
  for (const Output& output : program.outputs) {
    values[output.name] = to_numbers(result.outputs.at(output.name).front(), program.type(output.value).dtype);
  }
  return values;
}

inline layers::Layer layer(std::string name, layers::LayerKind kind) {
  return {std::move(name), std::move(kind), Place{"net.yaml", 7, 5, 4, "  - dense: 4"}};
}

namespace metric = metrics;
inline constexpr metric::Average each = metric::Average::none;

// A model and what trains it.
struct Network : model::Options {
  optimizers::Options optimizer{optimizers::Sgd{}, 1.0, {}, {}};
  step::StepOptions step;

  // On the devices of `of`; `axes` divide the batch.
  void place(const Mesh& of, AxisSet axes) {
    mesh = step.mesh = of;
    data_axes = step.data_axes = axes;
  }
};

// A network of these layers; its loss stands at line 9.
inline Network network(std::vector<layers::Layer> layers, losses::Loss loss = losses::SoftmaxCrossEntropy{}) {
  Network net;
  net.layers = std::move(layers);
  net.loss = std::move(loss);
  net.loss_place = {"net.yaml", 9, 7, 4, "loss: x"};
  return net;
}

// Three features, a hidden layer of four, three classes.
inline Network classifier(const Mesh& mesh) {
  Network net =
      network({layer("dense_0", layers::Dense{4}), layer("tanh_0", layers::Tanh{}), layer("head", layers::Dense{3})});
  net.place(mesh, mesh.all());
  net.metrics = {metrics::Metric{metric::Accuracy{}}};
  return net;
}

// The optimizer of `net` for batches of this shape; a schedule ends after `steps`.
inline step::Optimizer optimizer_of(const Network& net, const model::Model& model, model::BatchShape batch = {},
                                    std::int64_t steps = 20) {
  BatchPlan plan;
  plan.global = batch.rows_per_device * net.mesh.devices();
  plan.steps_per_epoch = 5;
  return step::make_optimizer(net.optimizer, model, plan, steps);
}

inline const Field labels{DType::i32, {}};

// Model::Initializer::scale of a kernel that is LeCun normal, the default.
inline double lecun_scale(double fan_in) { return std::sqrt(1 / fan_in) / 0.87962566103423978; }

// All that make_model says, as "message | help" lines.
inline std::string refusal(const model::Options& options, const Field& input, const Field& target) {
  try {
    model::make_model(options, input, target);
  } catch (const Error& error) {
    std::string text;
    for (const Diagnostic& diagnostic : error.diagnostics()) {
      text += (text.empty() ? "" : "\n") + diagnostic.message + " | " + diagnostic.help;
    }
    return text;
  }
  return "accepted";
}

// What the layers give for `inputs` (values of `input` for each row), on one device. `feed` has the lengths of
// sequences.
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
  const std::vector<equations::Number> numbers = model.numbers();
  const std::vector<Value> values = equations::declare_numbers(b, numbers);
  model::Forward forward{x, parameters, training, keys, row, {numbers, values}};
  if (model.has_lengths) forward.lengths = b.input(Group::batch, "lengths", {DType::i32, rows, {}});
  b.output("y", model::apply(b, model, forward));
  check(program);
  add_numbers(feed, numbers);
  feed["x"] = inputs;
  return results_of(program, feed);
}

}  // namespace pmaptrain::testing
