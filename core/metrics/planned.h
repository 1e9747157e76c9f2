// Metrics that are computed from sums over examples, and the checks of all metrics.
#pragma once

#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/equations/arithmetic.h"
#include "core/graph/builder.h"
#include "core/losses/equations.h"
#include "core/losses/objective.h"
#include "core/metrics/metric.h"

namespace pmaptrain::metrics {

using declare::Declaration;
using declare::field;
using declare::Key;
using losses::Checks;
using losses::Objective;
// What metrics of classes and labels are made of.
using losses::class_decision;
using losses::class_threshold;
using losses::Decision;
using losses::feature_mean;
using losses::label_decisions;
using losses::LabelDecisions;
using losses::position_mean;
using losses::predicted_class;
using losses::true_class;
using namespace equations;

// A value that is summed over examples and divided by their number; metrics are computed from one or more parts.
struct MeasurePart {
  std::string name;
  Shape shape;
  bool is_f64 = false;  // f64 instead of the model's dtype, because the metric subtracts large sums
};

// Marks the rows of a device that are examples; the others are padding. Where labels of sequences are ignored, it marks
// the positions that count: of T positions each has a T-th of the weight of its example.
struct ExampleMask {
  Value count;    // bool[B], or [B,T]: true for what counts
  Value weights;  // the same shape, of the model's dtype: 1 unless examples are weighted; 0 for what does not count
  bool weighted = false;
};

// `values` [B, ...] multiplied by the weights of their examples or positions. What does not count becomes 0 by
// `select`: a multiplication of ∞ by 0 would give NaN.
Value masked(Builder& b, const ExampleMask& rows, Value values);

// A metric as sums over examples and a function of these sums. Its values therefore do not depend on how the examples
// are split into batches, devices and microbatches.
struct PlannedMetric {
  std::vector<std::string> names;  // of its values
  std::vector<MeasurePart> parts;
  // The sum of each part over the rows of this device.
  std::function<std::vector<Value>(Builder& b, Value output, Value targets, const ExampleMask& rows)> sums;
  // Computes the values from the means of the parts over all examples.
  std::function<std::vector<double>(std::span<const std::vector<double>> means)> finish;
};

// A metric with what it is checked and planned for.
struct MetricCall {
  const Metric& metric;
  const Objective& objective;
  std::string name;  // of its values

  // What all metrics that compare these require of the targets.
  void check(Compares compares, const Checks& checks) const;
};

// The names of a metric's values: "recall", or one for each class, "recall_0".
std::vector<std::string> measure_names(const Metric& metric, const Objective& objective);
void check_metric(const Metric& metric, const Objective& objective, const Checks& checks);
// Plans a metric that is computed from sums, for an objective whose loss, target and output have been checked.
PlannedMetric plan_metric(const Metric& metric, const Objective& objective);

// ---- plans of several metrics ---------------------------------------------------------------------------------------
using Means = std::span<const std::vector<double>>;
using PerExample = std::function<Value(Builder& b, Value output, Value targets)>;

// The mean over examples of `value`, [B].
PlannedMetric mean_of(const std::string& name, PerExample value, double (*finish)(double) = nullptr);
// The mean over examples and over the numbers of a target of `error`, [B, target...]. `scales` brings each number's
// mean back to the units of targets that are normalised; then `finish` is applied to it.
PlannedMetric mean_of_each(const std::string& name, std::vector<double> scales, PerExample error,
                           double (*finish)(double) = nullptr);

// The sums over examples, [numbers], of `values` [B, target...]; of padded positions the means over T positions of
// such.
Value sum_of_each(Builder& b, const ExampleMask& rows, Value values, std::int64_t numbers);

// Whether metrics get outputs and targets in units of the targets' standard deviation.
bool is_scaled(const Objective& objective);
// Of each number of a target, in units of normalised targets: what brings squared errors back to those of targets.
std::vector<double> variances(const Objective& objective);

// The sums over rows of weights, by column of `values` [B, L].
Value weighed_sum(Builder& b, Value values, Value weights);
// 0 if the divisor is.
double quotient(double true_positives, double divisor);

// ---- keys of several metrics ----------------------------------------------------------------------------------------
inline Key threshold_key() {
  return {.path = "threshold",
          .high = 1,
          .open_low = true,
          .open_high = true,
          .meaning = "The probability above which a label counts as predicted, or class 1 of two classes.",
          .example = "threshold: 0.3"};
}
inline Key average_key(const char* meaning = "As for precision.") {
  return {.path = "average", .meaning = meaning, .example = "average: none"};
}

template <class Kind>
class Held final : public declare::Holds<MetricRules, Kind> {
  using declare::Holds<MetricRules, Kind>::kind_;
  static constexpr bool is_of_sums = requires(const Kind& kind, const MetricCall& call) { kind.plan(call); };
  static constexpr bool is_of_rows = requires(const Kind& kind, const RowCall& call) { kind.finish(call); };
  static_assert(
      requires { Kind::better; }, "this metric has no `better`: which values are better, or none");
  static_assert(
      requires { Kind::compares; }, "this metric has no `compares`: what it takes");
  // A function with another signature would be left out silently.
  static_assert(
      !requires { &Kind::check; } ||
          requires(const Kind& kind, const MetricCall& call, const Checks& checks) { kind.check(call, checks); },
      "check() of this metric has another signature");
  static_assert(
      !requires { &Kind::label; } ||
          requires(const Kind& kind) {
            { kind.label() } -> std::same_as<std::string>;
          },
      "label() of this metric has another signature");
  static_assert(is_of_sums != is_of_rows,
                "this metric has neither plan(), its sums over examples, nor finish(), its function of rows; or both");

 public:
  using declare::Holds<MetricRules, Kind>::Holds;

  std::string label() const override {
    if constexpr (requires { kind_.label(); }) return kind_.label();
    if constexpr (requires { kind_.average; }) {
      if (kind_.average == Kind::usual || kind_.average == Average::none) return this->name();
      return this->name() + "_" + declare::word_of(kind_.average);
    }
    return this->name();
  }
  std::optional<Mode> better() const override { return Kind::better; }
  Compares compares() const override { return Kind::compares; }
  void check(const MetricCall& call, const Checks& checks) const override {
    call.check(Kind::compares, checks);
    if constexpr (requires { kind_.check(call, checks); }) kind_.check(call, checks);
  }
  bool needs_rows() const override { return is_of_rows; }
  PlannedMetric plan(const MetricCall& call) const override {
    if constexpr (is_of_sums) return kind_.plan(call);
    throw std::logic_error(call.name + " is no metric of sums");
  }
  void finish(const RowCall& call) const override {
    if constexpr (is_of_rows) return kind_.finish(call);
    throw std::logic_error(this->name() + " is no metric of rows");
  }
  std::optional<Average> average() const override {
    if constexpr (requires { kind_.average; }) return kind_.average;
    return std::nullopt;
  }
  double threshold() const override {
    if constexpr (requires { kind_.threshold; }) return kind_.threshold;
    return 0.5;
  }
  std::optional<MetricKind> with_threshold(double threshold) const override {
    if constexpr (requires { kind_.threshold; }) {
      Kind made = kind_;
      made.threshold = threshold;
      return MetricKind(made);
    }
    return std::nullopt;
  }
};

}  // namespace pmaptrain::metrics
