// The middle of the errors of each number of a target, or the mean of the two in the middle.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/metrics/rows.h"

namespace pmaptrain::metrics {

struct MedianAbsoluteError {
  static constexpr std::optional<Mode> better = Mode::min;
  static constexpr Compares compares = Compares::numbers;

  static Declaration<MedianAbsoluteError> declaration() {
    return declare::kind<MedianAbsoluteError>(
        {.path = "median_absolute_error",
         .meaning =
             "For numeric targets, in evaluations alone: the median of |output - target|, of several outputs the "
             "mean of their medians, as scikit-learn's.",
         .example = "metrics: [median_absolute_error]"});
  }
  void check(const MetricCall& call, const Checks& checks) const {
    if (call.objective.has_padded_numbers()) {
      return checks.refuse(
          call.metric.place,
          call.name + " takes one target an example; sequences with lengths have numbers at each position",
          "mean_absolute_error, root_mean_squared_error and r2 take these");
    }
    if (!call.objective.weighted) return;
    checks.refuse(call.metric.place, call.name + " takes examples without weights", "use mean_absolute_error");
  }
  void finish(const RowCall& call) const {
    const std::int64_t numbers = numel(call.objective.target.shape);
    double sum = 0;
    for (std::int64_t n = 0; n < numbers; ++n) {
      std::vector<double> errors;
      for (std::size_t i = 0; i < call.examples.count(); ++i)
        errors.push_back(static_cast<double>(call.examples.error(i, static_cast<std::size_t>(n))));
      const bool is_known = std::none_of(errors.begin(), errors.end(), [](double error) { return std::isnan(error); });
      if (!is_known || errors.empty()) {
        sum = undefined_value;
        break;
      }
      std::sort(errors.begin(), errors.end());
      const std::size_t half = errors.size() / 2;
      sum += errors.size() % 2 == 1 ? errors[half] : (errors[half - 1] + errors[half]) / 2;
    }
    call.measures.values.emplace_back(measure_names(call.metric, call.objective).front(),
                                      sum / static_cast<double>(numbers));
  }
};

}  // namespace pmaptrain::metrics
