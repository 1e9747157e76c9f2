#include "core/runtime/gpu/plans.h"

#include <algorithm>

#include "core/ops/all.h"

namespace pmaptrain::gpu {
namespace {

Plans plan(const Source& source, int gpus, int planned, const GpuOptions& options) {
  PlanOptions how = options.plan;
  how.private_copies = source.private_copies;
  Plans plans;
  for (int gpu = 0; gpu < planned; ++gpu) {
    Shared shared;
    std::vector<Plan>& entries = plans.of.emplace_back();
    for (const Entry& entry : source.entries) {
      const Division division = divide(entry.program->mesh, gpus, parts_of(options));
      entries.push_back(make_plan(entry.program, division, gpu, how, shared));
      plans.layout.passing = std::max(plans.layout.passing, entries.back().passing_bytes);
    }
    plans.layout.kept = shared.kept;
    plans.layout.data = shared.data;
  }
  plans.layout.members = source.members;
  for (const Entry& entry : source.entries) {
    plans.layout.batches.push_back({entry.batches, entry.batch_by_member ? source.members : 1});
  }
  return plans;
}

}  // namespace

Parts parts_of(const GpuOptions& options) { return options.plan.deterministic ? Parts::whole_blocks : Parts::any; }

MakeKernel maker_of(const GpuOptions& options) {
  return options.make_kernel ? options.make_kernel : MakeKernel(make_gpu_kernel);
}

Plans plan_all(const Source& source, int gpus, const GpuOptions& options) { return plan(source, gpus, gpus, options); }
Plans plan_first(const Source& source, int gpus, const GpuOptions& options) { return plan(source, gpus, 1, options); }

}  // namespace pmaptrain::gpu
