// optimizer.reduce_on_plateau: a factor of the learning rate that decreases when evaluations no longer improve.
#pragma once

#include <cstdint>
#include <optional>

#include "core/spec/spec.h"

namespace pmaptrain::run {

// The state of reduce_on_plateau, as numbers that a checkpoint can hold.
struct PlateauState {
  std::optional<double> best;        // none before the first evaluation with a finite value
  std::int64_t bad_evaluations = 0;  // since the last improvement or decrease
  std::int64_t cooldown = 0;         // evaluations that are not counted yet
  double scale = 1.0;                // the factor of the learning rate
  friend bool operator==(const PlateauState&, const PlateauState&) = default;
};

// Returns the state after an evaluation whose metric is `value`, as optax.contrib.reduce_on_plateau does. A value is an
// improvement if it is better by more than rtol times the best value, plus atol; a value that is not finite never is.
// The scale decreases at the evaluation that completes `patience` evaluations without improvement, and the next
// `cooldown` evaluations do not count as bad. Unlike Optax's, the state stays as it is while every value is NaN: such a
// metric measures nothing.
PlateauState observe(const optimizers::ReduceOnPlateau& spec, PlateauState state, double value);

}  // namespace pmaptrain::run
