// How the work of a plan's stages is cut, for reports.
#pragma once

#include <vector>

#include "core/runtime/backend.h"
#include "core/runtime/cpu/bind.h"

namespace pmaptrain::cpu {

// Work is measured as in report_of: floating-point operations plus bytes.
std::vector<StageReport> parallelism_of(const Plan& plan, const BoundPlan& bound);

}  // namespace pmaptrain::cpu
