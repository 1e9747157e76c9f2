// How the work of a plan's stages is cut, for reports.
#pragma once

#include <vector>

#include "core/runtime/backend.h"
#include "core/runtime/cpu/bind.h"

namespace pmaptrain::cpu {

// In the units of report_of: floating operations and bytes.
std::vector<StageReport> parallelism_of(const Plan& plan, const Bound& bound);

}  // namespace pmaptrain::cpu
