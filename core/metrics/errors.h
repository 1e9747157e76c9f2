// Mean errors of numbers.
#pragma once

#include <cmath>

#include "core/losses/mean_squared_error.h"
#include "core/metrics/planned.h"

namespace pmaptrain::metrics {

inline Value absolute_error(Builder& b, Value output, Value targets) {
  return b.emit(ops::Abs{}, {losses::difference(b, output, targets)});
}

inline Value squared_error(Builder& b, Value output, Value targets) {
  const Value error = losses::difference(b, output, targets);
  return mul(b, error, error);
}

struct MeanAbsoluteError {
  static constexpr std::optional<Mode> better = Mode::min;
  static constexpr Compares compares = Compares::numbers;

  static Declaration<MeanAbsoluteError> declaration() {
    return declare::kind<MeanAbsoluteError>({.path = "mean_absolute_error",
                                             .meaning = "For numeric targets: the mean absolute error.",
                                             .example = "metrics: [mean_absolute_error]"});
  }
  PlannedMetric plan(const MetricCall& call) const {
    if (is_scaled(call.objective))
      return mean_of_each(call.name, call.objective.target_statistics->std, absolute_error);
    return mean_of(call.name, [](Builder& b, Value output, Value targets) {
      return feature_mean(b, absolute_error(b, output, targets));
    });
  }
};

struct MeanSquaredError {
  static constexpr std::optional<Mode> better = Mode::min;
  static constexpr Compares compares = Compares::numbers;

  static Declaration<MeanSquaredError> declaration() {
    return declare::kind<MeanSquaredError>({.path = "mean_squared_error",
                                            .meaning = "For numeric targets: the mean squared error.",
                                            .example = "metrics: [mean_squared_error]"});
  }
  PlannedMetric plan(const MetricCall& call) const {
    if (is_scaled(call.objective)) return mean_of_each(call.name, variances(call.objective), squared_error);
    return mean_of(call.name, [](Builder& b, Value output, Value targets) {
      return feature_mean(b, squared_error(b, output, targets));
    });
  }
};

// Computed for each number of a target, then averaged.
struct RootMeanSquaredError {
  static constexpr std::optional<Mode> better = Mode::min;
  static constexpr Compares compares = Compares::numbers;

  static Declaration<RootMeanSquaredError> declaration() {
    return declare::kind<RootMeanSquaredError>(
        {.path = "root_mean_squared_error",
         .meaning = "For numeric targets: the square root of the mean squared error; of several outputs the mean of "
                    "their roots, as scikit-learn computes it.",
         .example = "metrics: [root_mean_squared_error]"});
  }
  PlannedMetric plan(const MetricCall& call) const {
    return mean_of_each(call.name, variances(call.objective), squared_error,
                        [](double mean) { return std::sqrt(mean); });
  }
};

struct MeanAbsolutePercentageError {
  static constexpr std::optional<Mode> better = Mode::min;
  static constexpr Compares compares = Compares::numbers;

  static Declaration<MeanAbsolutePercentageError> declaration() {
    return declare::kind<MeanAbsolutePercentageError>(
        {.path = "mean_absolute_percentage_error",
         .meaning =
             "For numeric targets: the mean of |output - target| / max(|target|, 2.2e-16), as scikit-learn's; 0.1 "
             "is 10 %. A target of 0 makes it huge.",
         .example = "metrics: [mean_absolute_percentage_error]"});
  }
  PlannedMetric plan(const MetricCall& call) const {
    // What converts to the units of the targets, in which metrics of logarithms are already; the model itself may be
    // moved.
    Objective units;
    units.dtype = call.objective.dtype;
    units.target = call.objective.target;
    units.has_padding = call.objective.has_padding;
    if (is_scaled(call.objective)) units.target_statistics = call.objective.target_statistics;
    units.loss = losses::MeanSquaredError{};
    return mean_of(call.name, [units = std::move(units)](Builder& b, Value output, Value targets) {
      const Value own = in_units_of_targets(b, units, cast(b, targets, units.dtype));
      const Value errors = absolute_error(b, in_units_of_targets(b, units, output), own);
      const Value size = b.emit(ops::Abs{}, {own});
      return feature_mean(b, div(b, errors, b.emit(ops::Max{}, {size, scalar_like(b, size, 0x1p-52)})));
    });
  }
};

}  // namespace pmaptrain::metrics
