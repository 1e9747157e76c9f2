// Decides which evaluation is the best, and when to stop early. A NaN is never better.
#pragma once

#include <cstdint>
#include <optional>

#include "core/spec/spec.h"

namespace pmaptrain::run {

// Whether `value` is better than `best` by more than `margin` >= 0. Without a `best`, any value except NaN is.
bool improves(spec::Mode mode, double value, std::optional<double> best, double margin = 0.0);

// Whether a metric has been NaN at every evaluation so far: there is no `best`, and `value` is none either. Such a
// metric measures nothing, so it neither stops a run nor lowers a rate.
bool has_no_value_yet(std::optional<double> best, double value);

// The best evaluation so far. `mode` is from the config; a checkpoint holds the other members.
struct BestSoFar {
  spec::Mode mode = spec::Mode::min;
  std::int64_t step = 0;                  // of the best value
  std::optional<double> value = {};       // none before the first value that is not NaN
  std::optional<double> loss_there = {};  // of the same evaluation; none in runs of older versions

  // Whether an evaluation is better: by its value, or of equal values by its loss. A metric such as accuracy has few
  // values on a small split, and is often as high as it gets long before the loss is as low as it gets.
  bool is_beaten_by(double found, std::optional<double> loss) const;
  // Returns whether this evaluation is the new best.
  bool observe(std::int64_t at_step, double found, std::optional<double> loss);
};

// Early stopping. `mode`, `patience` and `min_delta` are from the config; a checkpoint holds the other members.
struct EarlyStopping {
  spec::Mode mode = spec::Mode::min;
  std::int64_t patience = 1;  // in evaluations
  double min_delta = 0.0;
  std::optional<double> best;  // the last value that was an improvement
  std::int64_t waited = 0;     // evaluations since then

  // Returns whether to stop: `patience` successive evaluations did not improve on the best by more than min_delta.
  // Those before the first that is a number do not count.
  bool observe(double found);
};

}  // namespace pmaptrain::run
