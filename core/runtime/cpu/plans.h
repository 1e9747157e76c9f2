// The plans of a module's entries, and the sizes of its memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/ops/all.h"
#include "core/runtime/backend.h"
#include "core/runtime/cpu/memory.h"
#include "core/runtime/cpu/plan.h"

namespace pmaptrain::cpu {

struct CpuBackendOptions {
  // The number of threads. By default, one for each core that CPU affinity and cgroups allow, but not more than pieces.
  // Programs whose steps take less time than a barrier get one thread, or in an ensemble one for each member.
  std::optional<int> workers = {};
  KernelChoice kernels = KernelChoice::best;
  // Creates a kernel in place of make_cpu_kernel. Called on the thread of the worker that will run the kernel.
  std::function<std::unique_ptr<CpuKernel>(const Op& op, const CpuRequest& request)> make_kernel = {};
  std::int64_t pieces = 0;  // see PlanOptions
};

struct Plans {
  std::vector<Plan> entries;
  SharedInputs inputs;
  MemorySizes sizes;  // without the scratch memory of kernels
  Processes processes;
  MemberShare member_share;
};

// Plans the entries, and asks the libraries for the layouts of packed operands.
Plans make_plans(const Source& source, const CpuBackendOptions& options, Processes processes = {});

}  // namespace pmaptrain::cpu
