// The plans of a module, one for each GPU and entry, and the sizes that its GPUs share.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/runtime/backend.h"
#include "core/runtime/gpu/executor.h"
#include "core/runtime/gpu/plan.h"
#include "core/runtime/gpu/workspace.h"

namespace pmaptrain::gpu {

struct GpuOptions {
  std::optional<int> gpus = {};  // empty: as many GPUs as there are and the mesh divides over
  PlanOptions plan = {};
  // For tests: used in place of make_gpu_kernel. Called on the threads of the devices.
  MakeKernel make_kernel = {};
  OpenPlanner planner = {};                // plans workspaces for needs(); may be empty
  std::optional<std::size_t> memory = {};  // bytes that a plan may use on each GPU; empty: all
};

Parts parts_of(const GpuOptions& options);
MakeKernel maker_of(const GpuOptions& options);

struct Plans {
  std::vector<std::vector<Plan>> of;  // by GPU and entry
  Layout layout;
};

// Plans for `gpus` GPUs. plan_first() makes only the plans of the first GPU, which tell the memory that each GPU needs.
Plans plan_all(const Source& source, int gpus, const GpuOptions& options);
Plans plan_first(const Source& source, int gpus, const GpuOptions& options);

// The bytes of a batch input on the host, for the whole mesh.
std::size_t host_bytes(const Program& program, const Input& input);

// Calls f(command, depth, times) in order, where the command is inside `depth` loops and runs `times` times per step.
// Commands of a loop's body follow the loop.
template <class F>
void for_each_row(const std::vector<Command>& commands, F&& f, int depth = 0, double times = 1) {
  for (const Command& command : commands) {
    f(command, depth, times);
    if (const Loop* const loop = std::get_if<Loop>(&command)) {
      for_each_row(loop->body, f, depth + 1, times * static_cast<double>(loop->iterations));
    }
  }
}

}  // namespace pmaptrain::gpu
