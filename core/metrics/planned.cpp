#include "core/metrics/planned.h"

namespace pmaptrain::metrics {

void MetricCall::check(Compares compares, const Checks& checks) const {
  const auto need_classes = [&] { checks.need_classes(name, metric.place, "mean_absolute_error"); };
  switch (compares) {
    case Compares::other: return;
    case Compares::classes: return need_classes();
    case Compares::numbers: return checks.need_numbers(name, metric.place, "accuracy");
    case Compares::labels:
    case Compares::one_label: break;
  }
  const bool multi = objective.is_multi_label(), binary = objective.is_binary();
  if (!binary && !multi) need_classes();
  // An average and a threshold that do not apply to these targets.
  if (metric.kind->average() == Average::samples && !multi) {
    checks.refuse(metric.place,
                  name + " takes average: samples with several labels; the targets are " + checks.targets(),
                  "use macro, micro or weighted");
  }
  if (metric.kind->threshold() != 0.5 && !multi && !binary && !is_of_two_classes(objective)) {
    checks.refuse(
        metric.place,
        name + " takes a threshold of labels and of two classes; of several classes the most likely is predicted",
        "remove it");
  }
  if (compares == Compares::one_label) checks.need_one_label(name, metric.place);
}

PlannedMetric mean_of(const std::string& name, PerExample value, double (*finish)(double)) {
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

PlannedMetric mean_of_each(const std::string& name, std::vector<double> scales, PerExample error,
                           double (*finish)(double)) {
  const std::int64_t outputs = std::ssize(scales);
  PlannedMetric metric{{name}, {{name, {outputs}}}, {}, {}};
  metric.sums = [outputs, error = std::move(error)](Builder& b, Value output, Value targets, const ExampleMask& rows) {
    return std::vector<Value>{sum_of_each(b, rows, error(b, output, targets), outputs)};
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

Value sum_of_each(Builder& b, const ExampleMask& rows, Value values, std::int64_t numbers) {
  const Shape shape = b.type(values).shape;
  const std::int64_t positions = numel(Shape(shape.begin() + 1, shape.end())) / numbers;
  if (positions == 1) {
    const Value flat = b.emit(ops::Reshape{{shape.front(), numbers}}, {values});
    return b.emit(ops::ReduceSum{{0}}, {masked(b, rows, flat)});
  }
  const Value flat = b.emit(ops::Reshape{{shape.front(), positions, numbers}}, {values});
  const Value sum = b.emit(ops::ReduceSum{{0, 1}}, {masked(b, rows, flat)});
  return div(b, sum, static_cast<double>(positions));
}

bool is_scaled(const Objective& objective) { return objective.target_statistics && objective.log_targets.empty(); }

std::vector<double> variances(const Objective& objective) {
  if (!is_scaled(objective)) return std::vector<double>(static_cast<std::size_t>(objective.numbers_of_target()), 1.0);
  std::vector<double> squares = objective.target_statistics->std;
  for (double& square : squares) square *= square;
  return squares;
}

Value weighed_sum(Builder& b, Value values, Value weights) {
  const Value each = broadcast_along(b, weights, b.type(values).shape, 0);
  return b.emit(ops::ReduceSum{{0}}, {mul(b, values, each)});
}

double quotient(double true_positives, double divisor) { return divisor == 0 ? 0 : true_positives / divisor; }

Value masked(Builder& b, const ExampleMask& rows, Value values) {
  const Shape shape = b.type(values).shape;
  const auto of_values = [&](Value row) {
    return b.type(row).shape.size() == shape.size() ? row : broadcast_along(b, row, shape, 0);
  };
  if (rows.weighted) {
    const Value weights = cast(b, rows.weights, b.type(values).dtype);
    values = mul(b, values, of_values(weights));
  }
  const Value count = of_values(rows.count);
  return select(b, count, values, scalar_like(b, values, 0.0));
}

std::vector<std::string> measure_names(const Metric& metric, const Objective& objective) {
  const std::string name = metric.label();
  if (!metric.is_per_class()) return {name};
  std::vector<std::string> names;
  for (std::int64_t c = 0; c < objective.measured_classes(); ++c) names.push_back(name + "_" + std::to_string(c));
  return names;
}

void check_metric(const Metric& metric, const Objective& objective, const Checks& checks) {
  metric.kind->check({metric, objective, metric.label()}, checks);
}

PlannedMetric plan_metric(const Metric& metric, const Objective& objective) {
  return metric.kind->plan({metric, objective, metric.label()});
}

}  // namespace pmaptrain::metrics
