// The coefficient of determination. It does not depend on the units.
#pragma once

#include "core/metrics/planned.h"

namespace pmaptrain::metrics {

// 1 - Σ (y - t)² / Σ (t - mean t)² for each output, with the variance computed as mean t² - (mean t)². The sums are
// f64, in which the square of an f32 is exact; f32 sums would lose the variance by cancellation where the mean is some
// thousand times as large.
struct R2 {
  static constexpr std::optional<Mode> better = Mode::max;
  static constexpr Compares compares = Compares::numbers;

  static Declaration<R2> declaration() {
    return declare::kind<R2>({.path = "r2",
                              .meaning =
                                  "For numeric targets: the coefficient of determination R², averaged over the "
                                  "outputs. If all targets are equal: 1 if every output equals its target, else 0.",
                              .example = "metrics: [r2]"});
  }
  PlannedMetric plan(const MetricCall& call) const {
    const std::string& name = call.name;
    const std::int64_t outputs = call.objective.numbers_of_target();
    const Shape shape = {outputs};
    PlannedMetric metric{
        {name}, {{name + ".error", shape}, {name + ".target", shape, true}, {name + ".square", shape, true}}, {}, {}};
    metric.sums = [outputs](Builder& b, Value output, Value targets, const ExampleMask& rows) {
      const auto sum = [&](Value values) { return sum_of_each(b, rows, values, outputs); };
      const Value error = losses::difference(b, output, targets);
      const Value target = cast(b, targets, DType::f64);
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
};

}  // namespace pmaptrain::metrics
