#include "core/runtime/gpu/plans.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/text.h"
#include "core/ops/all.h"
#include "core/passes/pipeline.h"

namespace pmaptrain::gpu {
namespace {

// The calls of a step. A kernel of several commands, such as that of a recurrence, counts as so many.
std::int64_t calls_of_step(const Plan& plan) {
  double more = 0;
  for_each_of<Launch>(plan.commands, [&](const Launch& launch, double times) {
    const std::size_t commands = make_gpu_kernel(launch.equation->op, request_of(plan, launch)).commands.size();
    if (commands > 1) more += times * static_cast<double>(commands - 1);
  });
  return calls_of(plan.commands) + static_cast<std::int64_t>(more);
}

// The number of steps that are recorded together as one graph. A launch of a graph costs the host some microseconds,
// which is as long as a short step takes. A step counts as short if it has few calls, because recording takes time and
// memory, and if its batch and temporaries can be read and written in about a millisecond. If each step has its own
// batch, the batches of a group must be small too, because they are copied together before the first step.
int group_of(const Plan& plan, const Entry& entry, std::int64_t members, std::int64_t batches) {
  constexpr std::int64_t most = 16, most_calls = 400;
  constexpr std::size_t most_bytes = std::size_t{512} << 20, most_copied = std::size_t{1} << 20;
  const std::int64_t calls = calls_of_step(plan) * members;
  const std::size_t read = product_of(plan.batch_bytes, static_cast<std::size_t>(batches));
  const std::size_t copied = entry.batches == 1 ? 0 : read, used = sum_of(read, plan.transient_bytes);
  const auto is_short = [&](std::int64_t group) {
    const auto count = static_cast<std::size_t>(group);
    return group * calls <= most_calls && product_of(count, copied) <= most_copied &&
           product_of(count, used) <= most_bytes;
  };
  std::int64_t group = most;
  while (group > 1 && !is_short(group)) group /= 2;
  return static_cast<int>(group);
}

BatchLayout batches_of(const Plan& plan, const Entry& entry, std::int64_t members, const Share& share) {
  BatchLayout batches;
  batches.members = entry.batch_by_member ? members : 1;
  batches.group = group_of(plan, entry, members, batches.members);
  batches.in_groups = entry.in_groups;
  batches.slots = entry.in_groups && entry.batches > 1 ? entry.batches * batches.group : entry.batches;
  for (const Input& input : plan.program->inputs) {
    batches.host_offsets.push_back(batches.host_bytes);
    batches.first_instances.push_back(share.instances(plan.program->type(input.value).varying).first);
    if (input.group != Group::batch) continue;
    const std::size_t bytes = host_bytes(*plan.program, input, share);
    batches.host_bytes = sum_of(batches.host_bytes, round_up(bytes, alignment));
  }
  return batches;
}

Limits limits_of(const GpuOptions& options, Placement placement) {
  const bool deterministic = options.plan.deterministic;
  return {deterministic ? Parts::whole_blocks : Parts::any, options.plan.blocks, placement.processes};
}

// Adds the plans of the next GPU of this process, of `gpus`.
void add_gpu(Plans& plans, const Source& source, int gpus, const GpuOptions& options) {
  PlanOptions how = options.plan;
  how.private_copies = source.private_copies;
  SharedPools shared;
  const int rank = plans.first_rank + static_cast<int>(plans.by_gpu.size());
  std::vector<Plan>& entries = plans.by_gpu.emplace_back();
  for (const auto& program : plans.programs) {
    const Division division =
        divide(program->mesh, gpus * plans.placement.processes, limits_of(options, plans.placement));
    entries.push_back(make_plan(program, division, rank, how, shared));
    plans.sizes.transient = std::max(plans.sizes.transient, entries.back().transient_bytes);
  }
  plans.sizes.persistent = shared.persistent;
  plans.sizes.data = shared.data;
}

void check_blocks(const Source& source, const GpuOptions& options, Placement placement) {
  const auto refuse = [](std::string message, std::string help) {
    throw Error(ExitStatus::usage, Diagnostic{"mesh", {}, std::move(message), std::move(help), {}});
  };
  if (options.plan.deterministic && options.plan.blocks > static_cast<int>(Device::most_nodes)) {
    refuse("with deterministic, GPUs add up at most " + std::to_string(Device::most_nodes) + " blocks, not " +
               std::to_string(options.plan.blocks),
           "fewer as mesh.blocks");
  }
  // Processes with GPUs have equal numbers of them, so they need equal numbers of devices.
  if (source.blocks % placement.processes != 0) {
    refuse(counted(source.blocks, "block") + " cannot be divided evenly over " + std::to_string(placement.processes) +
               " processes with GPUs",
           "a multiple of " + std::to_string(placement.processes) + " as mesh.blocks would do");
  }
}

}  // namespace

std::size_t host_bytes(const Program& program, const Input& input, const Share& share) {
  const Type& type = program.type(input.value);
  return product_of(static_cast<std::size_t>(share.instances(type.varying).count), bytes(type));
}

std::vector<int> possible_gpus_each(const Source& source, int most, const GpuOptions& options, Placement placement) {
  std::vector<int> counts = possible_gpu_counts(source.entries.front().program->mesh, most * placement.processes,
                                                limits_of(options, placement));
  for (int& count : counts) count /= placement.processes;
  return counts;
}

Plans plan_first_gpu(const Source& source, int gpus, const GpuOptions& options, Placement placement) {
  check_blocks(source, options, placement);
  Plans plans;
  plans.placement = placement;
  plans.first_rank = placement.process * gpus;
  for (const Entry& entry : source.entries) {
    plans.programs.push_back(std::make_shared<const Program>(run_passes(*entry.program, passes_of_gpus())));
  }
  add_gpu(plans, source, gpus, options);
  plans.sizes.members = source.members;
  for (std::size_t e = 0; e < source.entries.size(); ++e) {
    const Share share(plans.programs[e]->mesh, source.blocks, placement);
    plans.sizes.batches.push_back(batches_of(plans.by_gpu.front()[e], source.entries[e], source.members, share));
  }
  return plans;
}

void plan_other_gpus(Plans& plans, const Source& source, int gpus, const GpuOptions& options) {
  while (std::ssize(plans.by_gpu) < gpus) add_gpu(plans, source, gpus, options);
}

}  // namespace pmaptrain::gpu
