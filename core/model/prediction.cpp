#include "core/model/prediction.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/equations/arithmetic.h"
#include "core/graph/check.h"
#include "core/model/batch.h"

namespace pmaptrain::model {
namespace {

bool is_softmax(const Model& model) { return model.outputs() == spec::Outputs::softmax_logits; }

// Whether the last layer is the function that makes probabilities of logits.
bool gives_probabilities(const Model& model) {
  const std::vector<const Node*> layers = model.nodes();
  return !layers.empty() && layers.back()->kind == (is_softmax(model) ? "softmax" : "sigmoid");
}

Value classes(Builder& b, const Model& model, Value output, std::optional<std::int64_t> choices) {
  if (choices) {
    Shape limits = b.type(output).shape;
    limits.back() = *choices;
    output = b.emit(ops::Slice{Shape(limits.size(), 0), limits}, {output});
  }
  if (is_softmax(model) || model.is_binary()) return predicted_class(b, output, class_decision(model));
  return cast(b, b.emit(ops::Gt{}, {output, scalar_like(b, output, *class_threshold(model))}), DType::i32);
}

}  // namespace

bool is_classifier(const Model& model) { return !takes_numbers(model.loss); }

std::optional<double> class_threshold(const Model& model, double probability) {
  if (is_softmax(model)) return std::nullopt;
  return gives_probabilities(model) ? probability : std::log(probability / (1 - probability));
}

bool is_of_two_classes(const Model& model) { return is_softmax(model) && model.output == Shape{2}; }

Decision class_decision(const Model& model, double probability) {
  using By = Decision::By;
  if (const auto threshold = class_threshold(model, probability)) return {By::only_output, *threshold};
  if (!is_of_two_classes(model) || probability == 0.5) return {};
  if (gives_probabilities(model)) return {By::second, probability};
  return {By::difference, std::log(probability / (1 - probability))};
}

Value predicted_class(Builder& b, Value output, const Decision& decision) {
  using By = Decision::By;
  if (decision.by == By::argmax) return b.emit(ops::Argmax{std::ssize(b.type(output).shape) - 1}, {output});
  const auto column = [&](std::int64_t at) {
    return b.emit(ops::Slice{{0, at}, {b.type(output).shape.front(), at + 1}}, {output});
  };
  Value number = output;
  if (decision.by == By::second) number = column(1);
  if (decision.by == By::difference) number = sub(b, column(1), column(0));
  const Value above = b.emit(ops::Gt{}, {number, scalar_like(b, number, decision.threshold)});
  const Value rows = b.emit(ops::Reshape{{b.type(output).shape.front()}}, {above});
  return cast(b, rows, DType::i32);
}

LabelDecisions label_decisions(Builder& b, Value output, Value targets, double threshold) {
  const DType dtype = b.type(output).dtype;
  const Value above = b.emit(ops::Gt{}, {output, scalar_like(b, output, threshold)});
  const Value numbers = cast(b, targets, dtype);
  const Value is_true = b.emit(ops::Gt{}, {numbers, scalar_like(b, numbers, 0.5)});
  const Value predicted = cast(b, above, dtype);
  return {predicted, cast(b, is_true, dtype)};
}

Value true_class(Builder& b, Value targets) {
  return is_floating(b.type(targets).dtype) ? b.emit(ops::Argmax{1}, {targets}) : targets;
}

Value probabilities(Builder& b, const Model& model, Value output) {
  if (gives_probabilities(model)) return output;
  return is_softmax(model) ? softmax(b, output) : sigmoid(b, output);
}

OutputKind output_kind(const Model& model) {
  if (std::holds_alternative<spec::Poisson>(model.loss)) return OutputKind::log_rates;
  if (!is_classifier(model) || gives_probabilities(model)) return OutputKind::identity;
  return is_softmax(model) ? OutputKind::softmax_logits : OutputKind::sigmoid_logits;
}

Shape prediction_shape(const Model& model, PredictionKind kind) {
  Shape shape = model.output;
  if (kind == PredictionKind::classes && (is_softmax(model) || model.is_binary())) shape.pop_back();
  return shape;
}

Program prediction_program(const Model& model, const Mesh& mesh, AxisSet axes, std::int64_t rows_per_device,
                           const OpSet& ops, PredictionKind kind, std::optional<std::int64_t> choices) {
  Program program;
  program.name = "prediction";
  program.mesh = mesh;
  Builder b(program, ops);
  const std::vector<Value> parameters = declare_parameters(b, model, {}).single;
  Shape shape{rows_per_device};
  shape.insert(shape.end(), model.input.shape.begin(), model.input.shape.end());
  const Value inputs = b.input(Group::batch, "inputs", {model.input.dtype, std::move(shape), axes});
  const Value output = apply(b, model, {inputs, parameters});
  const Builder::Scope scope(b, {"predictions", model.loss_place});
  switch (kind) {
    case PredictionKind::classes: b.output("predictions", classes(b, model, output, choices)); break;
    case PredictionKind::probabilities: b.output("predictions", probabilities(b, model, output)); break;
    case PredictionKind::values: b.output("predictions", in_units_of_targets(b, model, output)); break;
    case PredictionKind::logits: b.output("predictions", output); break;
  }
  check(program, "building the prediction step");
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
