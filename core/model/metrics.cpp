// Metrics: checks, the sums from which each is computed, and the functions that compute its values from the sums.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/equations/arithmetic.h"
#include "core/model/checks.h"
#include "core/model/loss.h"
#include "core/model/model.h"
#include "core/model/prediction.h"
#include "core/model/row_metrics.h"

namespace pmaptrain::model {
namespace {

namespace metric = spec::metric;

using Means = std::span<const std::vector<double>>;
using PerExample = std::function<Value(Builder& b, Value output, Value targets)>;

// The mean over examples of `value`, [B].
PlannedMetric mean_of(const std::string& name, PerExample value, double (*finish)(double) = nullptr) {
  PlannedMetric metric{{name}, {{name, {}}}, {}, {}};
  metric.sums = [value = std::move(value)](Builder& b, Value output, Value targets, const ExampleMask& rows) {
    return std::vector<Value>{sum_from(b, masked(b, rows, value(b, output, targets)), 0)};
  };
  metric.finish = [finish](Means means) {
    const double mean = means.front().front();
    return std::vector<double>{finish == nullptr ? mean : finish(mean)};
  };
  return metric;
}

// The mean over examples and over the numbers of a target of `error`, [B, target...]. `scales` brings each number's
// mean back to the units of targets that are normalised; then `finish` is applied to it.
PlannedMetric mean_of_each(const std::string& name, std::vector<double> scales, PerExample error,
                           double (*finish)(double) = nullptr) {
  const std::int64_t outputs = std::ssize(scales);
  PlannedMetric metric{{name}, {{name, {outputs}}}, {}, {}};
  metric.sums = [outputs, error = std::move(error)](Builder& b, Value output, Value targets, const ExampleMask& rows) {
    const Value errors = error(b, output, targets);
    const Value flat = b.emit(ops::Reshape{{b.type(errors).shape.front(), outputs}}, {errors});
    return std::vector<Value>{b.emit(ops::ReduceSum{{0}}, {masked(b, rows, flat)})};
  };
  metric.finish = [scales = std::move(scales), finish](Means means) {
    double sum = 0;
    for (std::size_t i = 0; i < scales.size(); ++i) {
      const double mean = means.front()[i] * scales[i];
      sum += finish == nullptr ? mean : finish(mean);
    }
    return std::vector<double>{sum / static_cast<double>(scales.size())};
  };
  return metric;
}

Value absolute_error(Builder& b, Value output, Value targets) {
  return b.emit(ops::Abs{}, {difference(b, output, targets)});
}

Value squared_error(Builder& b, Value output, Value targets) {
  const Value error = difference(b, output, targets);
  return mul(b, error, error);
}

// The sums over rows of weights, by column of `values` [B, L].
Value weighed_sum(Builder& b, Value values, Value weights) {
  const Value each = broadcast_along(b, weights, b.type(values).shape, 0);
  return b.emit(ops::ReduceSum{{0}}, {mul(b, values, each)});
}

using Denominator = double (*)(double predicted, double actual);

double quotient(double true_positives, double divisor) { return divisor == 0 ? 0 : true_positives / divisor; }

// The average over the labels of each example, [B].
Value quotients_of_examples(Builder& b, const LabelDecisions& of, bool counts_predicted, bool counts_actual) {
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
// `denominator` computes the denominator from the number of predictions and the number of labels of a class.
PlannedMetric class_quotient(const spec::Metric& metric, const Model& model, Denominator denominator) {
  const std::string name = spec::to_string(metric);
  const metric::Average average = *spec::average_of(metric);
  const bool binary = model.is_binary(), multi = model.is_multi_label();
  const std::optional<double> threshold = class_threshold(model, spec::threshold_of(metric));  // of labels
  const Decision decision = class_decision(model, spec::threshold_of(metric));
  if (average == metric::Average::samples) {
    const bool of_predicted = denominator(1, 0) > 0, of_actual = denominator(0, 1) > 0;
    return mean_of(name, [=](Builder& b, Value output, Value targets) {
      return quotients_of_examples(b, label_decisions(b, output, targets, *threshold), of_predicted, of_actual);
    });
  }
  const std::int64_t classes = model.measured_classes();
  const std::string prefix = average == metric::Average::none ? name + ".each" : name;
  PlannedMetric planned{
      measure_names(metric, model),
      {{prefix + ".true_positives", {classes}}, {prefix + ".predicted", {classes}}, {prefix + ".actual", {classes}}},
      {},
      {}};
  planned.sums = [=](Builder& b, Value output, Value targets, const ExampleMask& rows) {
    if (multi) {
      const LabelDecisions of = label_decisions(b, output, targets, *threshold);
      const Value hits = weighed_sum(b, mul(b, of.predicted, of.truth), rows.weights);
      const Value predicted = weighed_sum(b, of.predicted, rows.weights);
      return std::vector{hits, predicted, weighed_sum(b, of.truth, rows.weights)};
    }
    // Classes as their numbers, [B], or [B, T] of the positions of a sequence.
    const Value said = predicted_class(b, output, decision);
    const Value truth = true_class(b, targets);
    const Shape shape = b.type(truth).shape;
    Value weights = rows.weights;
    if (b.type(weights).shape != shape) weights = broadcast_along(b, weights, shape, 0);
    const Value correct = cast(b, b.emit(ops::Eq{}, {said, truth}), b.type(weights).dtype);
    const ops::ScatterAdd count{classes};
    const Value true_positives = b.emit(count, {truth, mul(b, correct, weights)});
    const Value predicted = b.emit(count, {said, weights});
    return std::vector{true_positives, predicted, b.emit(count, {truth, weights})};
  };
  planned.finish = [denominator, average, binary, multi](Means means) {
    std::vector<double> quotients;
    double sum = 0, present = 0, weighted = 0, all_hits = 0, all_predicted = 0, all_actual = 0;
    for (std::size_t c = 0; c < means[0].size(); ++c) {
      const double true_positives = means[0][c], predicted = means[1][c], actual = means[2][c];
      quotients.push_back(quotient(true_positives, denominator(predicted, actual)));
      all_hits += true_positives;
      all_predicted += predicted;
      all_actual += actual;
      weighted += actual * quotients.back();
      if (!multi && predicted + actual == 0) continue;
      sum += quotients.back();
      ++present;
    }
    switch (average) {
      case metric::Average::none: return quotients;
      case metric::Average::micro:
        return std::vector<double>{quotient(all_hits, denominator(all_predicted, all_actual))};
      case metric::Average::weighted: return std::vector<double>{quotient(weighted, all_actual)};
      default: return std::vector<double>{binary ? quotients[1] : quotient(sum, present)};
    }
  };
  return planned;
}

// Whether each label is predicted right, as 0 and 1 [B, L].
Value right_labels(Builder& b, const LabelDecisions& of) {
  return cast(b, b.emit(ops::Eq{}, {of.predicted, of.truth}), b.type(of.truth).dtype);
}

PlannedMetric accuracy_of_labels(const spec::Metric& metric, const Model& model) {
  const std::string name = spec::to_string(metric);
  const metric::Average average = *spec::average_of(metric);
  const double threshold = *class_threshold(model, spec::threshold_of(metric));
  if (average != metric::Average::none && average != metric::Average::weighted) {
    return mean_of(name, [threshold](Builder& b, Value output, Value targets) {
      return feature_mean(b, right_labels(b, label_decisions(b, output, targets, threshold)));
    });
  }
  const std::int64_t labels = model.measured_classes();
  const std::string prefix = average == metric::Average::none ? name + ".each" : name;
  PlannedMetric planned{
      measure_names(metric, model), {{prefix + ".right", {labels}}, {prefix + ".actual", {labels}}}, {}, {}};
  planned.sums = [threshold](Builder& b, Value output, Value targets, const ExampleMask& rows) {
    const LabelDecisions of = label_decisions(b, output, targets, threshold);
    const Value right = b.emit(ops::ReduceSum{{0}}, {masked(b, rows, right_labels(b, of))});
    return std::vector{right, weighed_sum(b, of.truth, rows.weights)};
  };
  planned.finish = [each = average == metric::Average::none](Means means) {
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

// 1 - Σ (y - t)² / Σ (t - mean t)² for each output, with the variance computed as mean t² - (mean t)². The sums are
// f64, in which the square of an f32 is exact; f32 sums would lose the variance by cancellation where the mean is some
// thousand times as large.
PlannedMetric r2(const std::string& name, std::int64_t outputs) {
  const Shape shape = {outputs};
  PlannedMetric metric{
      {name}, {{name + ".error", shape}, {name + ".target", shape, true}, {name + ".square", shape, true}}, {}, {}};
  metric.sums = [outputs](Builder& b, Value output, Value targets, const ExampleMask& rows) {
    const ops::Reshape flat{{b.type(output).shape.front(), outputs}};
    const auto sum = [&](Value values) { return b.emit(ops::ReduceSum{{0}}, {masked(b, rows, values)}); };
    const Value error = b.emit(flat, {difference(b, output, targets)});
    const Value target = cast(b, b.emit(flat, {targets}), DType::f64);
    const Value errors = sum(mul(b, error, error));
    const Value total = sum(target);
    return std::vector{errors, total, sum(mul(b, target, target))};
  };
  metric.finish = [](Means means) {
    double sum = 0;
    for (std::size_t i = 0; i < means[0].size(); ++i) {
      const double variance = means[2][i] - means[1][i] * means[1][i];
      const double constant = means[0][i] > 0 ? 0.0 : 1.0 - means[0][i];
      // Below this bound the variance is rounding error of equal targets.
      const bool varies = variance > 1e-13 * means[2][i];
      sum += varies ? 1.0 - means[0][i] / variance : constant;
    }
    return std::vector<double>{sum / static_cast<double>(means[0].size())};
  };
  return metric;
}

// Whether metrics get outputs and targets in units of the targets' standard deviation.
bool is_scaled(const Model& model) { return model.target_statistics && model.log_targets.empty(); }

// Of each number of a target, in units of normalised targets: what brings squared errors back to those of targets.
std::vector<double> variances(const Model& model) {
  if (!is_scaled(model)) return std::vector<double>(static_cast<std::size_t>(numel(model.target.shape)), 1.0);
  std::vector<double> squares = model.target_statistics->std;
  for (double& square : squares) square *= square;
  return squares;
}

// A metric with what it is checked and planned for.
struct MetricCall {
  const spec::Metric& metric;
  const Model& model;
  std::string name;

  void need_classes(const Checks& checks) const { checks.need_classes(name, metric.place, "mean_absolute_error"); }
  void need_one_label(const Checks& checks) const { checks.need_one_label(name, metric.place); }
  void need_numbers(const Checks& checks) const { checks.need_numbers(name, metric.place, "accuracy"); }
  // An average and a threshold that do not apply to these targets.
  void check_average(const Checks& checks) const {
    const bool multi = model.is_multi_label();
    if (spec::average_of(metric) == metric::Average::samples && !multi) {
      checks.refuse(metric.place,
                    name + " takes average: samples with several labels; the targets are " + checks.targets(),
                    "use macro, micro or weighted");
    }
    if (spec::threshold_of(metric) == 0.5 || multi || model.is_binary() || is_of_two_classes(model)) return;
    checks.refuse(
        metric.place,
        name + " takes a threshold of labels and of two classes; of several classes the most likely is predicted",
        "remove it");
  }
};

// The struct of each metric: checks of its targets, and, of one of sums, the sums and the function of them. The values
// of the others are computed in row_metrics.cpp.
template <class Kind>
struct MetricOf {
  static_assert(sizeof(Kind) == 0, "this metric has no struct MetricOf in core/model/metrics.cpp");
};

struct MetricOfNumbers {
  template <class Kind>
  static void check(const Kind&, const MetricCall& call, const Checks& checks) {
    call.need_numbers(checks);
  }
};

// Of labels: of a class, 0 and 1 for a single output, or several.
struct MetricOfLabels {
  template <class Kind>
  static void check(const Kind&, const MetricCall& call, const Checks& checks) {
    if (!call.model.is_binary() && !call.model.is_multi_label()) call.need_classes(checks);
    call.check_average(checks);
  }
};

// The same, but not of sequences of labels.
struct MetricOfOneLabel : MetricOfLabels {
  template <class Kind>
  static void check(const Kind& kind, const MetricCall& call, const Checks& checks) {
    MetricOfLabels::check(kind, call, checks);
    call.need_one_label(checks);
  }
};

template <>
struct MetricOf<metric::Accuracy> : MetricOfLabels {
  static void check(const metric::Accuracy& accuracy, const MetricCall& call, const Checks& checks) {
    MetricOfLabels::check(accuracy, call, checks);
    if (accuracy.average == metric::Accuracy::usual || call.model.is_multi_label()) return;
    checks.refuse(call.metric.place,
                  "accuracy takes an average with several labels; the targets are " + checks.targets(),
                  "of classes recall is the accuracy of each: recall, recall: {average: none}");
  }
  static PlannedMetric plan(const metric::Accuracy& accuracy, const MetricCall& call) {
    if (call.model.is_multi_label()) return accuracy_of_labels(call.metric, call.model);
    return mean_of(call.name, [decision = class_decision(call.model, accuracy.threshold),
                               ignored = call.model.ignored_label()](Builder& b, Value output, Value targets) {
      const Value prediction = predicted_class(b, output, decision);
      const Value correct = b.emit(ops::Eq{}, {prediction, true_class(b, targets)});
      return position_mean(b, cast(b, correct, b.type(output).dtype), ignored);
    });
  }
};

template <>
struct MetricOf<metric::SubsetAccuracy> {
  static void check(const metric::SubsetAccuracy&, const MetricCall& call, const Checks& checks) {
    if (call.model.is_multi_label()) return;
    checks.refuse(call.metric.place,
                  "subset_accuracy takes several labels, [L] of 0 and 1, with sigmoid_cross_entropy; the targets are " +
                      checks.targets(),
                  call.model.target.shape.size() > 1 && !takes_numbers(call.model.loss)
                      ? metrics_of_masks_help
                      : "of one label it is accuracy");
  }
  static PlannedMetric plan(const metric::SubsetAccuracy& subset, const MetricCall& call) {
    return mean_of(call.name, [threshold = *class_threshold(call.model, subset.threshold),
                               labels = call.model.measured_classes()](Builder& b, Value output, Value targets) {
      const Value right = sum_from(b, right_labels(b, label_decisions(b, output, targets, threshold)), 1);
      const Value all = b.emit(ops::Eq{}, {right, scalar_like(b, right, static_cast<double>(labels))});
      return cast(b, all, b.type(output).dtype);
    });
  }
};

template <>
struct MetricOf<metric::TopKAccuracy> {
  static void check(const metric::TopKAccuracy& top, const MetricCall& call, const Checks& checks) {
    call.need_classes(checks);
    call.need_one_label(checks);
    const Shape& output = call.model.output;
    if (output.size() != 1 || top.k <= output.front()) return;
    checks.refuse(call.metric.place,
                  call.name + " needs the " + std::to_string(top.k) + " largest outputs, but the model has " +
                      std::to_string(output.front()),
                  "set k to at most " + std::to_string(output.front()));
  }
  static PlannedMetric plan(const metric::TopKAccuracy& top, const MetricCall& call) {
    return mean_of(call.name, [k = top.k](Builder& b, Value output, Value targets) {
      const Value best = b.emit_all(ops::TopK{k}, std::vector{output})[1];
      const Value label = broadcast_along(b, true_class(b, targets), b.type(best).shape, 0);
      return sum_from(b, cast(b, b.emit(ops::Eq{}, {best, label}), b.type(output).dtype), 1);
    });
  }
};

template <>
struct MetricOf<metric::Precision> : MetricOfLabels {
  static PlannedMetric plan(const metric::Precision&, const MetricCall& call) {
    return class_quotient(call.metric, call.model, [](double predicted, double) { return predicted; });
  }
};

template <>
struct MetricOf<metric::Recall> : MetricOfLabels {
  static PlannedMetric plan(const metric::Recall&, const MetricCall& call) {
    return class_quotient(call.metric, call.model, [](double, double actual) { return actual; });
  }
};

template <>
struct MetricOf<metric::F1> : MetricOfLabels {
  static PlannedMetric plan(const metric::F1&, const MetricCall& call) {
    return class_quotient(call.metric, call.model,
                          [](double predicted, double actual) { return (predicted + actual) / 2; });
  }
};

template <>
struct MetricOf<metric::RocAuc> : MetricOfOneLabel {};
template <>
struct MetricOf<metric::AveragePrecision> : MetricOfOneLabel {};
template <>
struct MetricOf<metric::ConfusionMatrix> {
  static void check(const metric::ConfusionMatrix&, const MetricCall& call, const Checks& checks) {
    if (!call.model.is_binary()) call.need_classes(checks);
  }
};
template <>
struct MetricOf<metric::MedianAbsoluteError> {
  static void check(const metric::MedianAbsoluteError&, const MetricCall& call, const Checks& checks) {
    call.need_numbers(checks);
    if (!call.model.weighted) return;
    checks.refuse(call.metric.place, call.name + " takes examples without weights", "use mean_absolute_error");
  }
};

template <>
struct MetricOf<metric::Perplexity> {
  static void check(const metric::Perplexity&, const MetricCall& call, const Checks& checks) {
    call.need_classes(checks);
  }
  static PlannedMetric plan(const metric::Perplexity&, const MetricCall& call) {
    return mean_of(
        call.name,
        [ignored = call.model.ignored_label()](Builder& b, Value output, Value targets) {
          return position_mean(b, softmax_cross_entropy(b, output, targets), ignored);
        },
        [](double mean) { return std::exp(mean); });
  }
};

template <>
struct MetricOf<metric::MeanAbsoluteError> : MetricOfNumbers {
  static PlannedMetric plan(const metric::MeanAbsoluteError&, const MetricCall& call) {
    if (is_scaled(call.model)) return mean_of_each(call.name, call.model.target_statistics->std, absolute_error);
    return mean_of(call.name, [](Builder& b, Value output, Value targets) {
      return feature_mean(b, absolute_error(b, output, targets));
    });
  }
};

template <>
struct MetricOf<metric::MeanSquaredError> : MetricOfNumbers {
  static PlannedMetric plan(const metric::MeanSquaredError&, const MetricCall& call) {
    if (is_scaled(call.model)) return mean_of_each(call.name, variances(call.model), squared_error);
    return mean_of(call.name, [](Builder& b, Value output, Value targets) {
      return feature_mean(b, squared_error(b, output, targets));
    });
  }
};

template <>
struct MetricOf<metric::MeanAbsolutePercentageError> : MetricOfNumbers {
  static PlannedMetric plan(const metric::MeanAbsolutePercentageError&, const MetricCall& call) {
    // What converts to the units of the targets, in which metrics of logarithms are already; the model itself may be
    // moved.
    Model units;
    units.dtype = call.model.dtype;
    units.target = call.model.target;
    if (is_scaled(call.model)) units.target_statistics = call.model.target_statistics;
    units.loss = spec::MeanSquaredError{};
    return mean_of(call.name, [units = std::move(units)](Builder& b, Value output, Value targets) {
      const Value own = in_units_of_targets(b, units, cast(b, targets, units.dtype));
      const Value errors = absolute_error(b, in_units_of_targets(b, units, output), own);
      const Value size = b.emit(ops::Abs{}, {own});
      return feature_mean(b, div(b, errors, b.emit(ops::Max{}, {size, scalar_like(b, size, 0x1p-52)})));
    });
  }
};

// Computed for each number of a target, then averaged.
template <>
struct MetricOf<metric::RootMeanSquaredError> : MetricOfNumbers {
  static PlannedMetric plan(const metric::RootMeanSquaredError&, const MetricCall& call) {
    return mean_of_each(call.name, variances(call.model), squared_error, [](double mean) { return std::sqrt(mean); });
  }
};

// R2 does not depend on the units.
template <>
struct MetricOf<metric::R2> : MetricOfNumbers {
  static PlannedMetric plan(const metric::R2&, const MetricCall& call) {
    return r2(call.name, numel(call.model.target.shape));
  }
};

}  // namespace

std::vector<std::string> measure_names(const spec::Metric& metric, const Model& model) {
  const std::string name = spec::to_string(metric);
  if (!spec::is_per_class(metric)) return {name};
  std::vector<std::string> names;
  for (std::int64_t c = 0; c < model.measured_classes(); ++c) names.push_back(name + "_" + std::to_string(c));
  return names;
}

void check_metric(const spec::Metric& metric, const Model& model, const Checks& checks) {
  const MetricCall call{metric, model, spec::to_string(metric)};
  std::visit([&]<class Kind>(const Kind& kind) { MetricOf<Kind>::check(kind, call, checks); }, metric.kind);
}

PlannedMetric plan_metric(const spec::Metric& metric, const Model& model) {
  const MetricCall call{metric, model, spec::to_string(metric)};
  return std::visit(
      [&]<class Kind>(const Kind& kind) -> PlannedMetric {
        if constexpr (is_of_rows<Kind>) {
          throw std::logic_error(call.name + " is no metric of sums");
        } else {
          return MetricOf<Kind>::plan(kind, call);
        }
      },
      metric.kind);
}

}  // namespace pmaptrain::model
