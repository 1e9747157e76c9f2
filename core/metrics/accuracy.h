// Accuracies of classes and labels.
#pragma once

#include "core/metrics/planned.h"

namespace pmaptrain::metrics {

// Whether each label is predicted right, as 0 and 1 [B, L].
inline Value right_labels(Builder& b, const LabelDecisions& of) {
  return cast(b, b.emit(ops::Eq{}, {of.predicted, of.truth}), b.type(of.truth).dtype);
}

inline PlannedMetric accuracy_of_labels(const Metric& metric, const Objective& objective) {
  const std::string name = metric.label();
  const Average average = *metric.kind->average();
  const double threshold = *class_threshold(objective, metric.kind->threshold());
  if (average != Average::none && average != Average::weighted) {
    return mean_of(name, [threshold](Builder& b, Value output, Value targets) {
      return feature_mean(b, right_labels(b, label_decisions(b, output, targets, threshold)));
    });
  }
  const std::int64_t labels = objective.measured_classes();
  const std::string prefix = average == Average::none ? name + ".each" : name;
  PlannedMetric planned{
      measure_names(metric, objective), {{prefix + ".right", {labels}}, {prefix + ".actual", {labels}}}, {}, {}};
  planned.sums = [threshold](Builder& b, Value output, Value targets, const ExampleMask& rows) {
    const LabelDecisions of = label_decisions(b, output, targets, threshold);
    const Value right = b.emit(ops::ReduceSum{{0}}, {masked(b, rows, right_labels(b, of))});
    return std::vector{right, weighed_sum(b, of.truth, rows.weights)};
  };
  planned.finish = [each = average == Average::none](Means means) {
    if (each) return means[0];
    double sum = 0, weights = 0;
    for (std::size_t c = 0; c < means[0].size(); ++c) {
      sum += means[0][c] * means[1][c];
      weights += means[1][c];
    }
    return std::vector<double>{quotient(sum, weights)};
  };
  return planned;
}

struct Accuracy {
  static constexpr Average usual = Average::micro;
  Average average = usual;
  double threshold = 0.5;

  static constexpr std::optional<Mode> better = Mode::max;
  static constexpr Compares compares = Compares::labels;

  static Declaration<Accuracy> declaration() {
    return declare::kind<Accuracy>(
        {.path = "accuracy",
         .meaning = "For labels: the fraction of examples with argmax(logits) equal to the label. With "
                    "sigmoid_cross_entropy, a label is predicted where its probability is above the threshold, and of "
                    "several labels it is the fraction of those that are right.",
         .example = "metrics: [accuracy]\nmetrics: [accuracy: {threshold: 0.3}]"},
        field(&Accuracy::average,
              {.path = "average",
               .meaning = "Of several labels. micro, macro and samples: of all labels; weighted: the mean over the "
                          "labels by how often each occurs; none: one value for each label. Of classes micro alone.",
               .example = "average: none"}),
        field(&Accuracy::threshold, threshold_key()));
  }
  void check(const MetricCall& call, const Checks& checks) const {
    if (average == usual || call.objective.is_multi_label()) return;
    checks.refuse(call.metric.place,
                  "accuracy takes an average with several labels; the targets are " + checks.targets(),
                  "of classes recall is the accuracy of each: recall, recall: {average: none}");
  }
  PlannedMetric plan(const MetricCall& call) const {
    if (call.objective.is_multi_label()) return accuracy_of_labels(call.metric, call.objective);
    return mean_of(call.name, [decision = class_decision(call.objective, threshold),
                               ignored = call.objective.ignored_label()](Builder& b, Value output, Value targets) {
      const Value prediction = predicted_class(b, output, decision);
      const Value correct = b.emit(ops::Eq{}, {prediction, true_class(b, targets)});
      return position_mean(b, cast(b, correct, b.type(output).dtype), ignored);
    });
  }
};

struct SubsetAccuracy {
  double threshold = 0.5;

  static constexpr std::optional<Mode> better = Mode::max;
  static constexpr Compares compares = Compares::other;

  static Declaration<SubsetAccuracy> declaration() {
    return declare::kind<SubsetAccuracy>(
        {.path = "subset_accuracy",
         .meaning = "For several labels: the fraction of examples of which all labels are predicted right, as "
                    "scikit-learn's accuracy_score.",
         .example = "metrics: [subset_accuracy]"},
        field(&SubsetAccuracy::threshold, threshold_key()));
  }
  void check(const MetricCall& call, const Checks& checks) const {
    if (call.objective.is_multi_label()) return;
    checks.refuse(call.metric.place,
                  "subset_accuracy takes several labels, [L] of 0 and 1, with sigmoid_cross_entropy; the targets are " +
                      checks.targets(),
                  call.objective.target.shape.size() > 1 && !takes_numbers(call.objective.loss)
                      ? losses::metrics_of_masks_help
                      : "of one label it is accuracy");
  }
  PlannedMetric plan(const MetricCall& call) const {
    return mean_of(call.name, [above = *class_threshold(call.objective, threshold),
                               labels = call.objective.measured_classes()](Builder& b, Value output, Value targets) {
      const Value right = sum_from(b, right_labels(b, label_decisions(b, output, targets, above)), 1);
      const Value all = b.emit(ops::Eq{}, {right, scalar_like(b, right, static_cast<double>(labels))});
      return cast(b, all, b.type(output).dtype);
    });
  }
};

struct TopKAccuracy {
  std::int64_t k = 5;

  static constexpr std::optional<Mode> better = Mode::max;
  static constexpr Compares compares = Compares::classes;

  static Declaration<TopKAccuracy> declaration() {
    return declare::kind<TopKAccuracy>(
        {.path = "top_k_accuracy",
         .meaning = "For labels: the fraction of examples whose label is among the k largest logits. It is reported as "
                    "top_5_accuracy for k = 5.",
         .example = "metrics: [top_k_accuracy: 5]"},
        field(&TopKAccuracy::k, {.path = "k",
                                 .low = 1,
                                 .shorthand = true,
                                 .meaning = "Number of largest logits to compare with the label.",
                                 .example = "k: 3"}));
  }
  std::string label() const { return "top_" + std::to_string(k) + "_accuracy"; }
  void check(const MetricCall& call, const Checks& checks) const {
    checks.need_one_label(call.name, call.metric.place);
    const Shape& output = call.objective.output;
    if (output.size() != 1 || k <= output.front()) return;
    checks.refuse(call.metric.place,
                  call.name + " needs the " + std::to_string(k) + " largest outputs, but the model has " +
                      std::to_string(output.front()),
                  "set k to at most " + std::to_string(output.front()));
  }
  PlannedMetric plan(const MetricCall& call) const {
    return mean_of(call.name,
                   [k = k, classes = call.objective.divided_classes()](Builder& b, Value output, Value targets) {
                     return losses::is_among_largest(b, output, true_class(b, targets), k, classes);
                   });
  }
};

}  // namespace pmaptrain::metrics
