// The text of `explain --parallelism`.
#pragma once

#include <span>
#include <string>

#include "core/runtime/backend.h"

namespace pmaptrain::report {

// A line for each stage, and the speedup with 2, 4, ... workers: total / the sum over stages of (serial + max(largest,
// rest / workers)), where rest is total - serial.
std::string parallelism_text(std::span<const StageReport> stages);

}  // namespace pmaptrain::report
