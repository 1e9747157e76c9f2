#include "core/runtime/cpu/plans.h"

#include <algorithm>
#include <cmath>

#include "core/base/machine.h"
#include "core/base/saturate.h"
#include "core/runtime/cpu/request.h"

namespace pmaptrain::cpu {
namespace {

PoolSizes larger(const PoolSizes& a, const PoolSizes& b) {
  return {std::max(a.constants, b.constants),       std::max(a.worker, b.worker), std::max(a.shared, b.shared),
          std::max(a.devices, b.devices),           std::max(a.batch, b.batch),   std::max(a.arena, b.arena),
          std::max(a.accumulators, b.accumulators), std::max(a.base, b.base)};
}

// The number of workers of a module: see CpuBackendOptions::workers.
int workers_of(const std::vector<Plan>& plans, std::int64_t members, const CpuBackendOptions& options) {
  if (options.workers) return std::max(1, *options.workers);
  const double cores = std::max(1.0, std::floor(allowed_cores()));
  double workers = std::min(cores, static_cast<double>(members));
  for (const Plan& plan : plans) {
    if (!plan.is_tiny()) workers = std::max(workers, std::min(cores, static_cast<double>(plan.max_pieces())));
  }
  return static_cast<int>(workers);
}

// Whether one worker runs a whole step of a member (MemorySizes::worker_per_member). It then passes no barriers. But
// each worker needs its own transient memory, and some workers may have one member more than others. So this is done if
// steps take less time than a barrier, or if members need little memory and divide almost evenly among the workers.
bool steps_are_of_one_worker(const std::vector<Plan>& plans, const MemorySizes& sizes) {
  constexpr std::size_t most_transient = std::size_t{64} << 20;
  if (sizes.members == 1 || sizes.workers == 1) return false;
  if (std::all_of(plans.begin(), plans.end(), [](const Plan& plan) { return plan.is_tiny(); })) return true;
  const PoolSizes& transient = sizes.transient;
  const std::int64_t rounds = (sizes.members + sizes.workers - 1) / sizes.workers;
  return 10 * rounds * sizes.workers <= 11 * sizes.members &&
         sum_of(transient.shared, transient.devices, transient.worker, transient.arena, transient.accumulators,
                sizes.packed) <= most_transient;
}

}  // namespace

Plans make_plans(const Source& source, const CpuBackendOptions& options, Processes processes) {
  Plans plans;
  plans.processes = processes;
  plans.member_share = MemberShare(source.members, processes.placement);
  const std::int64_t members = plans.member_share.members().count;
  PlanOptions how{source.private_copies, options.pieces, source.blocks, plans.member_share.within_group()};
  for (const Entry& entry : source.entries) add_inputs(*entry.program, how, plans.inputs);
  SharedInputs inputs = plans.inputs;
  for (const Entry& entry : source.entries) {
    how.work = entry.work;
    Plan& plan = plans.entries.emplace_back(make_plan(entry.program, how, inputs));
    plans.sizes.packed = std::max(plans.sizes.packed, settle_packing(plan, {options.kernels, options.make_kernel}));
    const std::int64_t batches = entry.batches * (entry.batch_by_member ? members : 1);
    plans.sizes.slot_bytes.push_back(plan.persistent.batch);
    plans.sizes.batch_bytes.push_back(product_of(plan.persistent.batch, static_cast<std::size_t>(batches)));
    plans.sizes.batch_by_member.push_back(entry.batch_by_member);
    // The next entry places its persistent buffers behind those of this one.
    inputs.sizes = plan.persistent;
    inputs.sizes.batch = 0;
    plans.sizes.transient = larger(plans.sizes.transient, plan.transient);
  }
  plans.sizes.persistent = inputs.sizes;
  plans.sizes.members = members;
  plans.sizes.workers = workers_of(plans.entries, members, options);
  // Workers that run members by themselves would exchange messages with other processes in no common order.
  plans.sizes.worker_per_member = how.placement.processes == 1 && steps_are_of_one_worker(plans.entries, plans.sizes);
  const bool alone = plans.sizes.workers == 1 || plans.sizes.worker_per_member;
  for (const Plan& plan : plans.entries) {
    const bool two = !alone && !plan.barrier_after_step;
    const std::size_t bytes = plan.transient.accumulators;
    plans.sizes.accumulators = std::max(plans.sizes.accumulators, product_of(two ? 2 : 1, bytes));
    if (two) plans.sizes.second_accumulators = std::max(plans.sizes.second_accumulators, bytes);
  }
  return plans;
}

}  // namespace pmaptrain::cpu
