#include "core/model/prediction.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/equations/arithmetic.h"
#include "core/equations/division.h"
#include "core/graph/check.h"
#include "core/losses/equations.h"
#include "core/model/batch.h"

namespace pmaptrain::model {
namespace {

// Whether a prediction is a class. The output then has a number for each class, or a single number.
bool is_one_class(const Model& model) {
  return model.outputs() == losses::Outputs::softmax_logits || model.is_binary();
}

Value classes(Builder& b, const Model& model, Value output, std::optional<std::int64_t> choices) {
  if (choices) {
    output = whole_outputs(b, model, output);
    Shape limits = b.type(output).shape;
    limits.back() = *choices;
    output = b.emit(ops::Slice{Shape(limits.size(), 0), limits}, {output});
  }
  if (is_one_class(model)) return predicted_class(b, output, class_decision(model));
  return cast(b, b.emit(ops::Gt{}, {output, scalar_like(b, output, *class_threshold(model))}), DType::i32);
}

}  // namespace

const Node* node_named(const Model& model, std::string_view path) {
  const std::vector<const Node*> nodes = model.nodes();
  const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const Node* node) { return node->name == path; });
  return found == nodes.end() ? nullptr : *found;
}

Shape prediction_shape(const Model& model, PredictionKind kind) {
  Shape shape = model.output;
  if (kind == PredictionKind::classes && is_one_class(model)) shape.pop_back();
  return shape;
}

namespace {

// What the model gives for a batch of inputs of the program; devices may have some classes each.
Value outputs_of(Builder& b, const Model& model, AxisSet axes, std::int64_t rows) {
  const std::vector<Value> parameters = declare_parameters(b, model, {}).single;
  Shape shape{rows};
  shape.insert(shape.end(), model.input.shape.begin(), model.input.shape.end());
  std::optional<Value> lengths;
  if (model.has_lengths) lengths = b.input(Group::batch, "lengths", {DType::i32, {rows}, axes});
  Forward forward{b.input(Group::batch, "inputs", {model.input.dtype, std::move(shape), axes}), parameters};
  forward.lengths = lengths;
  return apply(b, model, forward);
}

}  // namespace

Program features_program(const Model& model, const Mesh& mesh, AxisSet axes, std::int64_t rows_per_device,
                         const OpSet& ops, const Node& node) {
  Program program;
  program.name = "features";
  program.mesh = mesh;
  Builder b(program, ops);
  std::optional<Value> features;
  Model watched = model;
  for_each_node(watched.layers, [&](Node& one) {
    if (one.name != node.name || one.is_list()) return;  // the lists inside of a layer have its name
    one.apply = [&features, own = one.apply](const LayerCall& call, Value x) {
      const Value y = own(call, x);
      features = y;
      if (call.node.division == Division::columns || call.node.division == Division::keeps) {
        features = gathered_along(call.b, y, call.node.division_axes, call.node.output.back());
      }
      const std::optional<Lengths>& lengths = call.node.lengths;
      if (lengths && call.forward.lengths) {
        features = inside_or(call.b, lengths->at(call.b, *call.forward.lengths), *features, 0);
      }
      return y;
    };
  });
  outputs_of(b, watched, axes, rows_per_device);
  const Builder::Scope scope(b, {node.name, node.place});
  b.output("predictions", cast(b, features.value(), model.dtype));
  check(program, "building the step of features");
  return program;
}

Program prediction_program(const Model& model, const Mesh& mesh, AxisSet axes, std::int64_t rows_per_device,
                           const OpSet& ops, PredictionKind kind, std::optional<std::int64_t> choices) {
  Program program;
  program.name = "prediction";
  program.mesh = mesh;
  Builder b(program, ops);
  const Value output = outputs_of(b, model, axes, rows_per_device);
  const Builder::Scope scope(b, {"predictions", model.loss_place});
  switch (kind) {
    case PredictionKind::classes: b.output("predictions", classes(b, model, output, choices)); break;
    case PredictionKind::probabilities:
      b.output("predictions", probabilities(b, model, whole_outputs(b, model, output)));
      break;
    case PredictionKind::values: b.output("predictions", in_units_of_targets(b, model, output)); break;
    case PredictionKind::logits: b.output("predictions", whole_outputs(b, model, output)); break;
  }
  check(program, "building the prediction step");
  return program;
}

Program position_losses_program(const Model& model, const Mesh& mesh, AxisSet axes, std::int64_t rows_per_device,
                                const OpSet& ops) {
  Program program;
  program.name = "position_losses";
  program.mesh = mesh;
  Builder b(program, ops);
  const Value output = outputs_of(b, model, axes, rows_per_device);
  const Builder::Scope scope(b, {"predictions", model.loss_place});
  const std::int64_t positions = numel(model.target.shape);
  Value targets = b.input(Group::batch, "targets", {model.target.dtype, {rows_per_device, positions}, axes});
  if (const std::optional<std::int64_t> ignored = model.ignored_label()) {
    const Value is_ignored = b.emit(ops::Eq{}, {targets, scalar_like(b, targets, static_cast<double>(*ignored))});
    targets = select(b, is_ignored, scalar_like(b, targets, 0.0), targets);
  }
  std::vector<Value> parts;
  for (const Value part : {losses::softmax_cross_entropy(b, output, targets, {}, model.divided_classes()),
                           predicted_class(b, output, class_decision(model))}) {
    parts.push_back(b.emit(ops::Reshape{{rows_per_device, 1, positions}}, {cast(b, part, DType::f32)}));
  }
  b.output("predictions", b.emit(ops::Concatenate{1}, parts));
  check(program, "building the step of losses of positions");
  return program;
}

// ---- continuing a sequence ------------------------------------------------------------------------------------------

namespace {

Value keys_or_values(Builder& b, std::size_t layer, const char* which, const Type& type) {
  return b.input(Group::state, "cache/" + std::to_string(layer) + "/" + which, type);
}

void replace(Program& program, Value state, Value next) {
  for (Input& input : program.inputs) {
    if (input.value == state) input.next = next;
  }
}

std::vector<std::pair<Type, Type>> add_whole(Builder& b, const Model& model) {
  const std::vector<Value> parameters = declare_parameters(b, model, {}).single;
  Cache cache;
  Forward forward{b.input(Group::batch, "inputs", {DType::i32, {1, model.input.shape.front()}, {}}), parameters};
  forward.cache = &cache;
  b.output("predictions", apply(b, model, forward));
  std::vector<std::pair<Type, Type>> types;
  for (const auto& [keys, values] : cache.after) {
    const auto& [of_keys, of_values] = types.emplace_back(b.type(keys), b.type(values));
    const std::size_t layer = types.size() - 1;
    replace(b.program(), keys_or_values(b, layer, "keys", of_keys), keys);
    replace(b.program(), keys_or_values(b, layer, "values", of_values), values);
  }
  return types;
}

void add_next(Builder& b, const Model& model, const std::vector<std::pair<Type, Type>>& types) {
  const std::vector<Value> parameters = declare_parameters(b, model, {}).single;
  Cache cache;
  for (const auto& [keys, values] : types) {
    const std::size_t layer = cache.before.size();
    const Value of_keys = keys_or_values(b, layer, "keys", keys);
    cache.before.push_back({of_keys, keys_or_values(b, layer, "values", values)});
  }
  Forward forward{b.input(Group::batch, "inputs", {DType::i32, {1, 1}, {}}), parameters};
  cache.position = b.input(Group::batch, "position", {DType::i32, {1}, {}});
  forward.cache = &cache;
  b.output("predictions", apply(b, model, forward));
  for (std::size_t layer = 0; layer < cache.after.size(); ++layer) {
    replace(b.program(), cache.before[layer].keys, cache.after[layer].keys);
    replace(b.program(), cache.before[layer].values, cache.after[layer].values);
  }
}

}  // namespace

Continuation continuation(const Model& model, const Mesh& mesh, const OpSet& ops) {
  Continuation made;
  made.whole.name = "whole";
  made.next.name = "next";
  made.whole.mesh = made.next.mesh = mesh;
  Builder of_whole(made.whole, ops), of_next(made.next, ops);
  const auto types = add_whole(of_whole, model);
  add_next(of_next, model, types);
  check(made.whole, "building the program of a whole sequence");
  check(made.next, "building the program of a next token");
  return made;
}

}  // namespace pmaptrain::model
