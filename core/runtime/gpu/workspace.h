// The memory that libraries need on a GPU while their kernels run, beside the plan's buffers.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/runtime/gpu/device.h"
#include "core/runtime/gpu/executor.h"
#include "core/runtime/gpu/plan.h"

namespace pmaptrain::gpu {

struct Workspace {
  std::size_t bytes = 0;   // kernels use it in turn
  std::string is_planned;  // the GPU that libraries have planned for; empty: `bytes` is the most that they may take
};

// A platform whose devices prepare kernels and run nothing. Throws Error where the libraries are missing.
using OpenPlanner = std::function<Platform&()>;

// Of the launches of these plans. Without a planner, or where it fails, the bound.
Workspace workspace_of(const std::vector<Plan>& plans, const MakeKernel& make_kernel, const OpenPlanner& planner);

}  // namespace pmaptrain::gpu
