// The correlation of predicted and true classes.
#pragma once

#include <cmath>

#include "core/metrics/counts.h"

namespace pmaptrain::metrics {

struct MatthewsCorrcoef {
  double threshold = 0.5;

  static constexpr std::optional<Mode> better = Mode::max;
  static constexpr Compares compares = Compares::labels;

  static Declaration<MatthewsCorrcoef> declaration() {
    return declare::kind<MatthewsCorrcoef>(
        {.path = "matthews_corrcoef",
         .meaning = "For labels: the Matthews correlation coefficient of predicted and true classes, from -1 to 1; 0 "
                    "for a prediction that is always the same class, however frequent that is. Of sequences each "
                    "position is an example.",
         .example = "metrics: [matthews_corrcoef]"},
        field(&MatthewsCorrcoef::threshold, threshold_key()));
  }
  void check(const MetricCall& call, const Checks& checks) const {
    if (!call.objective.is_multi_label()) return;
    checks.refuse(call.metric.place,
                  call.name + " takes one class for each example; the targets are several labels, " + checks.targets(),
                  "f1, roc_auc and average_precision take several labels");
  }
  // For several classes: Gorodkin, 2004, "Comparing two K-category assignments by a K-category correlation
  // coefficient".
  PlannedMetric plan(const MetricCall& call) const {
    PlannedMetric planned = class_counts(call.metric, call.objective);
    // Of shares of all, so that one class alone has a spread of exactly 0.
    planned.finish = [](Means means) {
      double predicted = 0, actual = 0, hits = 0;
      for (std::size_t c = 0; c < means[0].size(); ++c) {
        hits += means[0][c];
        predicted += means[1][c];
        actual += means[2][c];
      }
      double by_chance = 0, predicted_spread = 0, actual_spread = 0;
      for (std::size_t c = 0; c < means[0].size(); ++c) {
        const double said = means[1][c] / predicted, is = means[2][c] / actual;
        by_chance += said * is;
        predicted_spread += said * (1 - said);
        actual_spread += is * (1 - is);
      }
      const double spread = predicted_spread * actual_spread;  // NaN without examples
      return std::vector<double>{spread > 0 ? (hits / actual - by_chance) / std::sqrt(spread) : 0.0};
    };
    return planned;
  }
};

}  // namespace pmaptrain::metrics
