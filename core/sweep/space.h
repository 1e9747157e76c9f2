// The values of trials: combinations of a grid, or random draws.
#pragma once

#include <cstdint>

#include "core/spec/sweep.h"

namespace pmaptrain::sweep {

// The values of a trial, counted from 0. A random trial depends on the sweep's seed, the trial's number and the names
// of the parameters alone, so more trials, or another order of parameters, leave it as it is. In a grid the last
// parameter varies fastest.
spec::TrialValues values_of_trial(const spec::SweepSpec& sweep, std::int64_t trial);

}  // namespace pmaptrain::sweep
