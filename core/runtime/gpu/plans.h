// The plans of a module, one for each GPU and entry, and the sizes of memory, which are the same on all GPUs.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "core/ops/all.h"
#include "core/runtime/backend.h"
#include "core/runtime/gpu/executor.h"
#include "core/runtime/gpu/plan.h"
#include "core/runtime/gpu/workspace.h"

namespace pmaptrain::gpu {

struct GpuOptions {
  std::optional<int> gpus = {};  // empty: the largest number of GPUs that exist and over which the mesh divides
  PlanOptions plan = {};
  MakeKernel make_kernel = make_gpu_kernel;  // tests have others; called on the threads of the devices
  OpenPlanningGpu open_planning_gpu = {};    // for Planned::needs(); may be empty
  std::optional<std::size_t> memory = {};    // bytes that a plan may use on each GPU; empty: all memory of the GPU
};

struct Plans {
  Placement placement;
  int first_rank = 0;                                    // of the GPUs of this process, among those of all
  std::vector<std::vector<Plan>> by_gpu;                 // by GPU of this process and entry
  std::vector<std::shared_ptr<const Program>> programs;  // of the entries, after the passes for GPUs
  MemorySizes sizes;
};

// Plans the entries for `gpus` GPUs in each process, but makes only the plans of the first GPU of this process, which
// suffice to compute the memory that each GPU needs. plan_other_gpus() adds those of its other GPUs. Throws Error
// (usage) if the mesh cannot be divided so.
Plans plan_first_gpu(const Source& source, int gpus, const GpuOptions& options, Placement placement = {});
void plan_other_gpus(Plans& plans, const Source& source, int gpus, const GpuOptions& options);

// Loads the plans of all GPUs of this process. Every process calls this.
std::unique_ptr<Module> load_module(Source source, Platform& platform, Plans plans, const GpuOptions& options,
                                    Processes processes);

// The numbers of GPUs, up to `most`, that each of the processes can have, in ascending order.
std::vector<int> possible_gpus_each(const Source& source, int most, const GpuOptions& options, Placement placement);

// The bytes of a batch input on the host, for the devices of a process.
std::size_t host_bytes(const Program& program, const Input& input, const Share& share);

}  // namespace pmaptrain::gpu
