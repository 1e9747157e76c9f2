// What evaluations decide: which one is the best, and when to stop early. A value of NaN never wins.
#pragma once

#include <cstdint>
#include <optional>

#include "core/spec/spec.h"

namespace pmaptrain::train {

// Whether `value` is better than `best` by more than `margin` >= 0. A first value (no `best`) is, unless it is NaN.
bool improves(spec::Mode mode, double value, std::optional<double> best, double margin = 0.0);

// The best evaluation so far. The members after `mode` are the state.
struct BestSoFar {
  spec::Mode mode = spec::Mode::min;
  std::int64_t step = 0;        // of the best value
  std::optional<double> value;  // none before the first that is not NaN

  // Returns whether this evaluation is the new best: a tie is not.
  bool observe(std::int64_t at_step, double found);
};

// The members after `min_delta` are the state.
struct EarlyStopping {
  spec::Mode mode = spec::Mode::min;
  std::int64_t patience = 1;  // in evaluations
  double min_delta = 0.0;
  std::optional<double> best;  // the last value that was an improvement
  std::int64_t waited = 0;     // evaluations since then

  // Returns whether to stop: `patience` evaluations in a row did not improve on the best by more than min_delta.
  bool observe(double found);
};

}  // namespace pmaptrain::train
