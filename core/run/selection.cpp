#include "core/run/selection.h"

#include <cmath>

namespace pmaptrain::run {

bool improves(spec::Mode mode, double value, std::optional<double> best, double margin) {
  if (std::isnan(value)) return false;
  if (!best) return true;
  return mode == spec::Mode::min ? value < *best - margin : value > *best + margin;
}

bool has_no_value_yet(std::optional<double> best, double value) { return !best && std::isnan(value); }

bool BestSoFar::is_beaten_by(double found, std::optional<double> loss) const {
  if (value && found == *value) return loss && loss_there && *loss < *loss_there;
  return improves(mode, found, value);
}

bool BestSoFar::observe(std::int64_t at_step, double found, std::optional<double> loss) {
  if (!is_beaten_by(found, loss)) return false;
  step = at_step;
  value = found;
  loss_there = loss;
  return true;
}

bool EarlyStopping::observe(double found) {
  if (has_no_value_yet(best, found)) return false;
  if (improves(mode, found, best, min_delta)) {
    best = found;
    waited = 0;
    return false;
  }
  ++waited;
  return waited >= patience;
}

}  // namespace pmaptrain::run
