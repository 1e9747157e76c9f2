// The values of trials: combinations of a grid, or random draws.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/spec/sweep.h"

namespace pmaptrain::sweep {

// How a random search draws from a space of finitely many combinations.
enum class Draws {
  distinct,          // no combination twice
  with_replacement,  // of earlier versions, whose sweeps keep their trials
};

// How many combinations of values there are; none where a parameter is a real number, or where they are too many to be
// counted.
std::optional<std::int64_t> combinations_of(const spec::SweepSpec& sweep);

// The values of all trials. A random draw depends on the sweep's seed, its number and the names of the parameters
// alone, and a trial is the draw that gives the next combination that no trial has. So more trials, or another order of
// parameters, leave those before as they are. Where there are fewer combinations than trials, each is a trial. In a
// grid the last parameter varies fastest.
std::vector<spec::TrialValues> values_of_trials(const spec::SweepSpec& sweep, Draws draws = Draws::distinct);

}  // namespace pmaptrain::sweep
