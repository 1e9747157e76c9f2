// Reports on the plan of an entry, for all GPUs together.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/runtime/backend.h"
#include "core/runtime/gpu/executor.h"
#include "core/runtime/gpu/plan.h"

namespace pmaptrain::gpu {

// One row for each command, in order: for a Loop first, then for the commands of its body. The rows point to equations
// of the plan's program. `runs_own` says of a loaded plan's launches which run GpuKernel::own.
std::vector<InstructionReport> instructions_of(const Plan& plan, const MakeKernel& make_kernel,
                                               const std::function<bool(const Launch&)>& runs_own = nullptr);

// Returns a single stage with the work of all commands: all GPUs have equal work, and wait for each other only to
// exchange values.
std::vector<StageReport> stages_of(const Plan& plan, const MakeKernel& make_kernel);

// What the GPU does for the collectives of the program.
std::map<const Equation*, std::vector<RankStep>> rank_steps_of(const Plan& plan);

// The bytes that each GPU sends to others in a step.
std::size_t sent_bytes_of(const Plan& plan);
// The same by the axes of the collectives.
std::vector<std::pair<AxisSet, double>> sent_along(const Plan& plan);

// How many times a step waits for other GPUs.
std::int64_t barriers_of(const Plan& plan);

}  // namespace pmaptrain::gpu
