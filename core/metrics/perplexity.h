// exp of the mean cross-entropy.
#pragma once

#include <cmath>

#include "core/metrics/planned.h"

namespace pmaptrain::metrics {

struct Perplexity {
  static constexpr std::optional<Mode> better = Mode::min;
  static constexpr Compares compares = Compares::classes;

  static Declaration<Perplexity> declaration() {
    return declare::kind<Perplexity>({.path = "perplexity",
                                      .meaning = "For labels: exp of the mean softmax cross-entropy.",
                                      .example = "metrics: [perplexity]"});
  }
  PlannedMetric plan(const MetricCall& call) const {
    return mean_of(
        call.name,
        [ignored = call.objective.ignored_label(), classes = call.objective.divided_classes()](Builder& b, Value output,
                                                                                               Value targets) {
          return position_mean(b, losses::softmax_cross_entropy(b, output, targets, {}, classes), ignored);
        },
        [](double mean) { return std::exp(mean); });
  }
};

}  // namespace pmaptrain::metrics
