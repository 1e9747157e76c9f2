// The text of `explain --parallelism`.
#pragma once

#include <span>
#include <string>

#include "core/runtime/backend.h"

namespace pmaptrain::report {

// By the cost model, how many times faster than one worker several are: total / the sum over stages of (serial +
// max(largest, rest / workers)), where rest is total - serial.
double speed_up(std::span<const StageReport> stages, double workers);

// A line for each stage, and the speed-up with 1, 2, 4, ... workers. `width` as in columns().
std::string parallelism_text(std::span<const StageReport> stages, int width = 0);

}  // namespace pmaptrain::report
