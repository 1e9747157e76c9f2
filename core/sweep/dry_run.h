// What the trials of a sweep are and what they would cost.
#pragma once

#include <string>

#include "core/sweep/plan.h"

namespace pmaptrain::sweep {

// A row for each trial, the programs that they share, and the cost: steps, examples, and the seconds that training
// takes on the cores of this process, the first of `runners`, by measuring a few steps of each program (the first 16;
// the mean of these stands for more). `json`: as a document. `columns`: of the
// terminal that the text is for; 0: none.
std::string dry_run_text(const spec::Sweep& sweep, const SweepPlan& plan, std::span<const Runner> runners, bool json,
                         int columns = 0);

}  // namespace pmaptrain::sweep
