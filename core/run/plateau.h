// optimizer.reduce_on_plateau: a factor of the learning rate that falls when evaluations no longer improve.
#pragma once

#include <cstdint>
#include <optional>

#include "core/spec/spec.h"

namespace pmaptrain::train {

// What it remembers, as numbers that a checkpoint can hold.
struct PlateauState {
  std::optional<double> best;        // none before the first evaluation with a number
  std::int64_t bad_evaluations = 0;  // since the last improvement, or the last fall
  std::int64_t cooldown = 0;         // evaluations that do not count yet
  double scale = 1.0;                // the learning rate is multiplied by it
  friend bool operator==(const PlateauState&, const PlateauState&) = default;
};

// The state after an evaluation whose metric is `value`, as optax.contrib.reduce_on_plateau has it: an improvement is
// larger than Optax's rtol, 1e-4 of the best value; the scale falls at the evaluation that completes `patience` without
// one; and none of the `cooldown` evaluations after that counts as bad. What is not finite is never an improvement.
PlateauState observe(const spec::ReduceOnPlateau& spec, PlateauState state, double value);

}  // namespace pmaptrain::train
