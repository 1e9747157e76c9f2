// The memory that kernels need on a GPU while they run, besides their operands and results.
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
  std::size_t scratch = 0;  // what a kernel says that it needs
  std::size_t bytes = 0;    // of kernels of libraries. Kernels use both in turn
  std::string planned_for;  // name of the GPU that the libraries made plans for; empty if `bytes` is an upper bound
};

// Returns the GPU for which workspaces are planned. Throws Error if libraries are missing.
using OpenPlanningGpu = std::function<DescribedGpu&()>;

// The memory for the launches of these plans, as the libraries plan it for the GPU that `open_gpu` returns. If
// `open_gpu` is empty or the libraries fail, `bytes` is an upper bound.
Workspace workspace_of(const std::vector<Plan>& plans, const MakeKernel& make_kernel, const OpenPlanningGpu& open_gpu);

}  // namespace pmaptrain::gpu
