// What the plan of an entry consists of, for reports: for all GPUs of a plan together.
#pragma once

#include <vector>

#include "core/runtime/backend.h"
#include "core/runtime/gpu/executor.h"
#include "core/runtime/gpu/plan.h"

namespace pmaptrain::gpu {

// By command, in order; what a loop repeats follows it. They point to equations of the plan's program.
std::vector<InstructionReport> instructions_of(const Plan& plan, const MakeKernel& make_kernel);

// Returns a single stage with the work of all commands: all GPUs have equal work, and wait for each other only where
// they exchange values.
std::vector<StageReport> stages_of(const Plan& plan, const MakeKernel& make_kernel);

}  // namespace pmaptrain::gpu
