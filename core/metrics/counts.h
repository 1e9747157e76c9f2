// How many examples are predicted to be of each class or label, how many are, and how many of these agree.
#pragma once

#include "core/metrics/planned.h"

namespace pmaptrain::metrics {

// A metric that is computed from these numbers: its parts are true positives, predictions and labels, [C] each. Of
// several labels each is counted by itself. It has no finish() yet.
inline PlannedMetric class_counts(const Metric& metric, const Objective& objective) {
  const std::string prefix = metric.label() + (metric.is_per_class() ? ".each" : "");
  const std::int64_t classes = objective.measured_classes();
  const bool multi = objective.is_multi_label();
  // Positions are so many, and their shares of an example's weight so small, that sums in f32 would lose digits.
  const bool is_f64 = objective.has_sequences();
  const std::optional<double> threshold = class_threshold(objective, metric.kind->threshold());  // of labels
  const Decision decision = class_decision(objective, metric.kind->threshold());
  PlannedMetric planned{measure_names(metric, objective),
                        {{prefix + ".true_positives", {classes}, is_f64},
                         {prefix + ".predicted", {classes}, is_f64},
                         {prefix + ".actual", {classes}, is_f64}},
                        {},
                        {}};
  planned.sums = [=](Builder& b, Value output, Value targets, const ExampleMask& rows) {
    if (multi) {
      const LabelDecisions of = label_decisions(b, output, targets, *threshold);
      const Value hits = weighed_sum(b, mul(b, of.predicted, of.truth), rows.weights);
      const Value predicted = weighed_sum(b, of.predicted, rows.weights);
      return std::vector{hits, predicted, weighed_sum(b, of.truth, rows.weights)};
    }
    // Classes as their numbers, [B], or [B, T...] of positions.
    const Value said = predicted_class(b, output, decision);
    const Value truth = true_class(b, targets);
    const Shape shape = b.type(truth).shape;
    Value weights = is_f64 ? cast(b, rows.weights, DType::f64) : rows.weights;
    if (b.type(weights).shape != shape) weights = broadcast_along(b, weights, shape, 0);
    const Value correct = cast(b, b.emit(ops::Eq{}, {said, truth}), b.type(weights).dtype);
    const ops::ScatterAdd count{classes};
    const Value true_positives = b.emit(count, {truth, mul(b, correct, weights)});
    const Value predicted = b.emit(count, {said, weights});
    return std::vector{true_positives, predicted, b.emit(count, {truth, weights})};
  };
  return planned;
}

}  // namespace pmaptrain::metrics
