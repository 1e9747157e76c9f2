#include "core/losses/objective.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/equations/arithmetic.h"
#include "core/equations/division.h"
#include "core/losses/equations.h"
#include "core/losses/focal.h"
#include "core/losses/poisson.h"
#include "core/losses/quantile.h"

namespace pmaptrain::losses {

using namespace equations;

Outputs Objective::outputs() const {
  if (loss.as<Focal>() == nullptr) return loss->outputs();
  const bool each = output == Shape{1} || (target.shape.size() == 1 && target.shape == output);
  return each ? Outputs::sigmoid_logits : Outputs::softmax_logits;
}

std::int64_t Objective::classes() const {
  if (outputs() == Outputs::softmax_logits) return output.back();
  return is_binary() ? 2 : 0;
}

std::vector<Number> loss_numbers(const Objective& objective) { return objective.loss->numbers(objective); }

Value LossCall::mean(Value values) const {
  if (!inside) return feature_mean(b, values);
  const Shape shape = b.type(values).shape;
  const Value of_values = b.emit(ops::Broadcast{shape, {0, 1}}, {*inside});
  return feature_mean(b, select(b, of_values, values, scalar_like(b, values, 0.0)));
}

Value example_losses(Builder& b, const Objective& objective, Value output, Value targets, const Numbers& numbers,
                     std::optional<Value> inside) {
  return objective.loss->losses({b, output, targets, numbers, inside, objective.divided_classes()});
}

// ---- units ----------------------------------------------------------------------------------------------------------
namespace {

// One number for each number of a target, for values [B, target...] or outputs of f64. Padded positions have the same.
Value for_each_target(Builder& b, const Objective& objective, Value like, const std::vector<double>& numbers) {
  if (numbers.size() == 1) return scalar_like(b, like, numbers.front());
  const Shape shape = b.type(like).shape;
  const Shape of_one(shape.begin() + 1, shape.end());
  std::vector<double> each;  // of quantiles the number of their target
  const std::size_t times = static_cast<std::size_t>(numel(of_one)) / numbers.size();
  if (objective.has_padded_numbers()) {
    for (std::size_t t = 0; t < times; ++t) each.insert(each.end(), numbers.begin(), numbers.end());
  } else {
    for (const double number : numbers) each.insert(each.end(), times, number);
  }
  const Value vector = b.emit(ops::Reshape{of_one}, {vector_constant(b, DType::f64, each)});
  std::vector<std::int64_t> dims(of_one.size());
  std::iota(dims.begin(), dims.end(), 1);
  return b.emit(ops::Broadcast{shape, dims}, {vector});
}

// `logarithmic` for the numbers of a target that have a logarithm, and `values` for the others.
Value where_log(Builder& b, const Objective& objective, Value logarithmic, Value values) {
  if (std::find(objective.log_targets.begin(), objective.log_targets.end(), false) == objective.log_targets.end())
    return logarithmic;
  const std::vector<double> flags(objective.log_targets.begin(), objective.log_targets.end());
  const Value flag = for_each_target(b, objective, values, flags);
  return select(b, b.emit(ops::Gt{}, {flag, scalar_like(b, flag, 0.0)}), logarithmic, values);
}

}  // namespace

Value normalised_targets(Builder& b, const Objective& objective, Value targets) {
  if (!objective.target_statistics) return targets;
  Value exact = cast(b, targets, DType::f64);
  if (!objective.log_targets.empty()) exact = where_log(b, objective, b.emit(ops::Log1p{}, {exact}), exact);
  const Value distance = sub(b, exact, for_each_target(b, objective, exact, objective.target_statistics->mean));
  return cast(b, div(b, distance, for_each_target(b, objective, exact, objective.target_statistics->std)),
              objective.dtype);
}

Value in_units_of_targets(Builder& b, const Objective& objective, Value output) {
  if (objective.loss.as<Poisson>() != nullptr) return b.emit(ops::Exp{}, {output});
  if (!objective.target_statistics) return output;
  const Value exact = cast(b, output, DType::f64);
  const Value distance = mul(b, exact, for_each_target(b, objective, exact, objective.target_statistics->std));
  Value values = add(b, distance, for_each_target(b, objective, exact, objective.target_statistics->mean));
  if (!objective.log_targets.empty()) {
    // Finite as f32, and at least 0.
    const Value least = scalar_like(b, values, 0.0), most = scalar_like(b, values, largest_log_target);
    const Value bounded = b.emit(ops::Min{}, {b.emit(ops::Max{}, {values, least}), most});
    values = where_log(b, objective, b.emit(ops::Expm1{}, {bounded}), values);
  }
  return cast(b, values, dtype_of_values(objective));
}

Value point_outputs(Builder& b, const Objective& objective, Value output) {
  if (objective.loss.as<Poisson>() != nullptr) return b.emit(ops::Exp{}, {output});
  const auto* const quantile = objective.loss.as<Quantile>();
  if (quantile == nullptr) return output;
  const auto distance = [](double q) { return std::abs(q - 0.5); };
  const auto nearest = std::min_element(quantile->q.begin(), quantile->q.end(),
                                        [&](double a, double c) { return distance(a) < distance(c); });
  const std::int64_t at = nearest - quantile->q.begin(), count = std::ssize(quantile->q);
  const Shape shape = b.type(output).shape;
  const Value each = b.emit(ops::Reshape{{shape.front(), shape.back() / count, count}}, {output});
  Shape target{shape.front()};
  target.insert(target.end(), objective.target.shape.begin(), objective.target.shape.end());
  return b.emit(ops::Reshape{std::move(target)},
                {b.emit(ops::Slice{{0, 0, at}, {shape.front(), shape.back() / count, at + 1}}, {each})});
}

// ---- what outputs mean ----------------------------------------------------------------------------------------------
namespace {

bool is_softmax(const Objective& objective) { return objective.outputs() == Outputs::softmax_logits; }

// Whether the last layer is the function that makes probabilities of logits.
bool gives_probabilities(const Objective& objective) {
  return objective.last_layer == (is_softmax(objective) ? "softmax" : "sigmoid");
}

}  // namespace

bool is_classifier(const Objective& objective) { return !takes_numbers(objective.loss); }

std::optional<double> class_threshold(const Objective& objective, double probability) {
  if (is_softmax(objective)) return std::nullopt;
  return gives_probabilities(objective) ? probability : std::log(probability / (1 - probability));
}

bool is_of_two_classes(const Objective& objective) { return is_softmax(objective) && objective.output == Shape{2}; }

Decision class_decision(const Objective& objective, double probability) {
  using By = Decision::By;
  if (const auto threshold = class_threshold(objective, probability)) return {By::only_output, *threshold};
  const Classes classes = objective.divided_classes();
  if (!is_of_two_classes(objective) || probability == 0.5) return {By::argmax, 0, classes};
  if (gives_probabilities(objective)) return {By::second, probability, classes};
  return {By::difference, std::log(probability / (1 - probability)), classes};
}

namespace {

Value with_all_classes(Builder& b, Value output, const Classes& classes) {
  if (!classes.are_divided(b, output)) return output;
  return gathered_along(b, output, classes.axes, classes.count);
}

}  // namespace

Value predicted_class(Builder& b, Value output, const Decision& decision) {
  using By = Decision::By;
  if (decision.by == By::argmax) return largest_class(b, output, decision.classes);
  output = with_all_classes(b, output, decision.classes);
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

Value whole_outputs(Builder& b, const Objective& objective, Value output) {
  return with_all_classes(b, output, objective.divided_classes());
}

Value true_class(Builder& b, Value targets) {
  return is_floating(b.type(targets).dtype) ? b.emit(ops::Argmax{1}, {targets}) : targets;
}

Value probabilities(Builder& b, const Objective& objective, Value output) {
  if (gives_probabilities(objective)) return output;
  return is_softmax(objective) ? softmax(b, output) : sigmoid(b, output);
}

OutputKind output_kind(const Objective& objective) {
  if (objective.loss.as<Poisson>() != nullptr) return OutputKind::log_rates;
  if (!is_classifier(objective) || gives_probabilities(objective)) return OutputKind::identity;
  return is_softmax(objective) ? OutputKind::softmax_logits : OutputKind::sigmoid_logits;
}

}  // namespace pmaptrain::losses
