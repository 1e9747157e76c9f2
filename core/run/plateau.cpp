#include "core/run/plateau.h"

#include <cmath>

#include "core/run/selection.h"

namespace pmaptrain::run {
namespace {

bool improves(const optimizers::ReduceOnPlateau& spec, const std::optional<double>& best, double value) {
  if (!std::isfinite(value)) return false;
  if (!best) return true;
  const double least = spec.rtol * std::abs(*best) + spec.atol;
  return spec::mode_of(spec) == spec::Mode::min ? value < *best - least : value > *best + least;
}

}  // namespace

PlateauState observe(const optimizers::ReduceOnPlateau& spec, PlateauState state, double value) {
  if (has_no_value_yet(state.best, value)) return state;
  const bool improved = improves(spec, state.best, value);
  if (improved) state.best = value;
  if (state.cooldown > 0) {
    --state.cooldown;
    state.bad_evaluations = 0;
    return state;
  }
  state.bad_evaluations = improved ? 0 : state.bad_evaluations + 1;
  if (state.bad_evaluations < spec.patience) return state;
  state.bad_evaluations = 0;
  state.cooldown = spec.cooldown;
  state.scale *= spec.factor;
  return state;
}

}  // namespace pmaptrain::run
