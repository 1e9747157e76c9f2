// The memory that libraries need on a GPU while their kernels run, in addition to the plan's buffers.
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
  std::size_t bytes = 0;   // memory for one kernel; kernels use it in turn
  std::string is_planned;  // the GPU that the libraries have planned for; empty if `bytes` is an upper bound
};

// Opens a platform whose devices only prepare kernels. Throws Error if libraries are missing.
using OpenPlanner = std::function<Platform&()>;

// The workspace for the launches of these plans: as planned, or an upper bound if there is no planner or it fails.
Workspace workspace_of(const std::vector<Plan>& plans, const MakeKernel& make_kernel, const OpenPlanner& planner);

}  // namespace pmaptrain::gpu
