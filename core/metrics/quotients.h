// Precision, recall and F1.
#pragma once

#include "core/metrics/counts.h"

namespace pmaptrain::metrics {

using Denominator = double (*)(double hits, double predicted, double actual);

// The average over the labels of each example, [B].
inline Value quotients_of_examples(Builder& b, const LabelDecisions& of, bool counts_predicted, bool counts_actual) {
  const Value hits = sum_from(b, mul(b, of.predicted, of.truth), 1);
  const Value predicted = sum_from(b, of.predicted, 1), actual = sum_from(b, of.truth, 1);
  const Value both = mul(b, add(b, predicted, actual), 0.5);
  const Value divisor = counts_predicted && counts_actual ? both : counts_predicted ? predicted : actual;
  // Without any the quotient is 0 / 1.
  return div(b, hits, b.emit(ops::Max{}, {divisor, scalar_like(b, divisor, 0.5)}));
}

// Precision, recall and F1 are quotients for each class or label: its true positives divided by the number of
// predictions of it, the number of times that it is true, or the mean of both. A quotient with a denominator of 0 is 0.
// The macro average excludes classes without predictions and labels, but no label of several; with labels 0 and 1 it is
// the value of class 1. These are the definitions of scikit-learn and torchmetrics.
//
// `denominator` computes the denominator from the true positives, the predictions and the labels of a class.
inline PlannedMetric class_quotient(const Metric& metric, const Objective& objective, Denominator denominator) {
  const std::string name = metric.label();
  const Average average = *metric.kind->average();
  const bool binary = objective.is_binary(), multi = objective.is_multi_label();
  const std::optional<double> threshold = class_threshold(objective, metric.kind->threshold());  // of labels
  if (average == Average::samples) {
    const bool of_predicted = denominator(0, 1, 0) > 0, of_actual = denominator(0, 0, 1) > 0;
    return mean_of(name, [=](Builder& b, Value output, Value targets) {
      return quotients_of_examples(b, label_decisions(b, output, targets, *threshold), of_predicted, of_actual);
    });
  }
  PlannedMetric planned = class_counts(metric, objective);
  planned.finish = [denominator, average, binary, multi](Means means) {
    std::vector<double> quotients;
    double sum = 0, present = 0, weighted = 0, all_hits = 0, all_predicted = 0, all_actual = 0;
    for (std::size_t c = 0; c < means[0].size(); ++c) {
      const double true_positives = means[0][c], predicted = means[1][c], actual = means[2][c];
      quotients.push_back(quotient(true_positives, denominator(true_positives, predicted, actual)));
      all_hits += true_positives;
      all_predicted += predicted;
      all_actual += actual;
      weighted += actual * quotients.back();
      if (!multi && predicted + actual == 0) continue;
      sum += quotients.back();
      ++present;
    }
    switch (average) {
      case Average::none: return quotients;
      case Average::micro:
        return std::vector<double>{quotient(all_hits, denominator(all_hits, all_predicted, all_actual))};
      case Average::weighted: return std::vector<double>{quotient(weighted, all_actual)};
      default: return std::vector<double>{binary ? quotients[1] : quotient(sum, present)};
    }
  };
  return planned;
}

struct Precision {
  static constexpr Average usual = Average::macro;
  Average average = usual;
  double threshold = 0.5;

  static constexpr std::optional<Mode> better = Mode::max;
  static constexpr Compares compares = Compares::labels;

  static Declaration<Precision> declaration() {
    return declare::kind<Precision>(
        {.path = "precision",
         .meaning =
             "For labels: true positives / (true positives + false positives) of each class or label; 0 if there "
             "are none of either. Of sequences each position is an example.",
         .example = "metrics: [precision, precision: {average: none}]"},
        field(&Precision::average,
              average_key("macro: the mean over the classes that occur in the labels or in the predictions (with a "
                          "single logit: class 1 alone), or over all of several labels. micro: of all decisions "
                          "together. weighted: the mean by how often each class or label occurs. samples: of several "
                          "labels, the mean over examples. none: one value for each: precision_0, precision_1, ... "
                          "The others are reported as precision_micro and so on.")),
        field(&Precision::threshold, threshold_key()));
  }
  PlannedMetric plan(const MetricCall& call) const {
    return class_quotient(call.metric, call.objective, [](double, double predicted, double) { return predicted; });
  }
};

struct Recall {
  static constexpr Average usual = Average::macro;
  Average average = usual;
  double threshold = 0.5;

  static constexpr std::optional<Mode> better = Mode::max;
  static constexpr Compares compares = Compares::labels;

  static Declaration<Recall> declaration() {
    return declare::kind<Recall>(
        {.path = "recall",
         .meaning =
             "For labels: true positives / (true positives + false negatives) of each class or label; 0 if there "
             "are none of either. Of sequences each position is an example.",
         .example = "metrics: [recall]"},
        field(&Recall::average, average_key()), field(&Recall::threshold, threshold_key()));
  }
  PlannedMetric plan(const MetricCall& call) const {
    return class_quotient(call.metric, call.objective, [](double, double, double actual) { return actual; });
  }
};

struct F1 {
  static constexpr Average usual = Average::macro;
  Average average = usual;
  double threshold = 0.5;

  static constexpr std::optional<Mode> better = Mode::max;
  static constexpr Compares compares = Compares::labels;

  static Declaration<F1> declaration() {
    return declare::kind<F1>(
        {.path = "f1",
         .meaning = "For labels: the harmonic mean of precision and recall of each class or label; 0 if both are 0. Of "
                    "sequences each position is an example.",
         .example = "metrics: [f1]\nmetrics: [f1: {average: micro, threshold: 0.3}]"},
        field(&F1::average, average_key()), field(&F1::threshold, threshold_key()));
  }
  PlannedMetric plan(const MetricCall& call) const {
    return class_quotient(call.metric, call.objective,
                          [](double, double predicted, double actual) { return (predicted + actual) / 2; });
  }
};

}  // namespace pmaptrain::metrics
