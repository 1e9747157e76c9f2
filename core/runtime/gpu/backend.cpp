#include "core/runtime/gpu/backend.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/runtime/gpu/ranks.h"
#include "core/runtime/gpu/report.h"

namespace pmaptrain::gpu {

Platform* GpuBackend::platform_if_found() const {
  try {
    return &open_();
  } catch (const Error& error) {
    if (error.status() != ExitStatus::resource) throw;
    return nullptr;
  }
}

// The number of GPUs of each process. If no GPU is found but the options have a memory size, the plan is for one GPU of
// that size.
int GpuBackend::gpus_for(const Source& source, Placement placement) const {
  if (options_.gpus) return *options_.gpus;
  if (options_.memory && platform_if_found() == nullptr) return 1;
  const std::vector<int> possible = possible_gpus_each(source, open_().devices(), options_, placement);
  return possible.empty() ? 1 : possible.back();  // where none is possible, plan_on() throws
}

// The memory of the GPU that has least.
std::optional<std::size_t> GpuBackend::device_memory() const {
  if (options_.memory) return options_.memory;
  const Platform* const platform = platform_if_found();
  if (platform == nullptr) return std::nullopt;
  std::size_t least = platform->properties(0).memory;
  for (int gpu = 1; gpu < platform->devices(); ++gpu) least = std::min(least, platform->properties(gpu).memory);
  return least;
}

namespace {

// The bytes of all sums over rows and over devices, most of which are gradients. They share the transient memory in
// turn, so no more than its size is reported.
std::size_t bytes_of_sums(const Plan& plan) {
  std::set<int> sums;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    if (plan.buffers[i].span > 0) sums.insert(static_cast<int>(i));
  }
  for_each_of<Reduce>(plan.commands, [&](const Reduce& reduce, double) {
    for (const Reduce::Group& group : reduce.groups) sums.insert(group.to.buffer);
  });
  for_each_of<Collect>(plan.commands, [&](const Collect& collect, double) { sums.insert(collect.to.buffer); });
  std::size_t bytes = 0;
  for (const int sum : sums) {
    if (plan.buffer(sum).pool == Pool::transient) bytes = sum_of(bytes, plan.buffer(sum).bytes());
  }
  return std::min(bytes, plan.transient_bytes);
}

// The memory that each GPU needs, computed from the plans of one GPU. Scratch memory and workspaces are not included.
MemoryNeeds needs_of_one(const Plans& plans) {
  const auto members = static_cast<std::size_t>(plans.sizes.members);
  MemoryNeeds needs;
  std::set<std::string_view> counted;
  std::size_t constants = 0;
  for (std::size_t e = 0; e < plans.by_gpu.front().size(); ++e) {
    const Plan& plan = plans.by_gpu.front()[e];
    for (std::size_t i = 0; i < plan.program->inputs.size(); ++i) {
      const Input& input = plan.program->inputs[i];
      if (input.group == Group::batch || !counted.insert(input.name).second) continue;
      std::size_t& item = needs.of(input.group);
      item =
          sum_of(item, product_of(is_of_all_members(input.group) ? 1 : members, plan.buffer(plan.inputs[i]).bytes()));
    }
    needs.batches = sum_of(needs.batches, product_of(plans.sizes.batches[e].count(), plan.batch_bytes));
    needs.gradients = std::max(needs.gradients, bytes_of_sums(plan));
    constants = sum_of(constants, plan.constant_bytes);
  }
  const std::size_t kept = sum_of(product_of(members, plans.sizes.persistent), plans.sizes.data);
  const std::size_t named = sum_of(needs.parameters, needs.optimizer, needs.data);
  needs.activations = sum_of(plans.sizes.transient - needs.gradients, constants, kept > named ? kept - named : 0);
  const auto pool = [&](std::string name, std::size_t bytes, std::size_t copies, std::string meaning) {
    if (bytes > 0) needs.pools.push_back({std::move(name), bytes, copies, std::move(meaning)});
  };
  pool("constants", constants, 1, "filled when the program is loaded");
  pool("persistent", plans.sizes.persistent, members, "inputs and outputs, on each GPU");
  pool("data", plans.sizes.data, 1, "examples that stay, on each GPU");
  pool("transient", plans.sizes.transient, 1, "temporaries, on each GPU");
  pool("batches", needs.batches, 1, "batch inputs, on each GPU");
  return needs;
}

class GpuPlanned final : public Planned {
 public:
  GpuPlanned(Source source, Processes processes, int gpus, std::optional<std::size_t> device_memory,
             std::function<Platform&()> open, const GpuOptions& options)
      : Planned(std::move(source)),
        processes_(processes),
        gpus_(gpus),
        device_memory_(device_memory),
        open_(std::move(open)),
        options_(options),
        plans_(plan_first_gpu(this->source(), gpus, options, processes.placement)) {}

  int workers() const override { return gpus_; }
  std::int64_t barriers_per_step(std::size_t entry) const override { return barriers_of(first(entry)); }
  std::vector<std::pair<AxisSet, double>> sent_along(std::size_t entry) const override {
    return gpu::sent_along(first(entry));
  }
  std::unique_ptr<Module> load() && override;

 private:
  MemoryNeeds compute_needs() const override;
  PlanReport make_report(std::size_t entry) const override {
    const Plan& plan = first(entry);
    return {instructions_of(plan, options_.make_kernel), stages_of(plan, options_.make_kernel), sent_bytes_of(plan),
            plan.program, rank_steps_of(plan)};
  }
  const Plan& first(std::size_t entry) const { return plans_.by_gpu.front()[entry]; }

  void check_gpus(const Platform& platform) const;

  const Processes processes_;
  const int gpus_;                                  // of this process
  const std::optional<std::size_t> device_memory_;  // see Backend::device_memory()
  const std::function<Platform&()> open_;
  const GpuOptions options_;
  Plans plans_;  // of the first GPU of this process
};

MemoryNeeds GpuPlanned::compute_needs() const {
  const Workspace workspace = workspace_of(plans_.by_gpu.front(), options_.make_kernel, options_.open_planning_gpu);
  MemoryNeeds needs = needs_of_one(plans_);
  needs.kernels = workspace.scratch;
  needs.workspace = workspace.bytes;
  const std::string as = workspace.planned_for.empty() ? "at most: their libraries are not here to plan them"
                                                       : "as planned for " + workspace.planned_for;
  if (needs.kernels > 0) needs.pools.push_back({"scratch", needs.kernels, 1, "scratch memory of kernels"});
  if (workspace.bytes > 0) needs.pools.push_back({"workspace", workspace.bytes, 1, "of libraries' kernels, " + as});

  const auto count = static_cast<std::size_t>(gpus_);
  for (const auto purpose : purposes) needs.*purpose = product_of(count, needs.*purpose);
  for (PoolReport& pool : needs.pools) pool.copies *= count;
  needs.host = product_of(count, Executor::pinned_bytes);
  for (const BatchLayout& batches : plans_.sizes.batches) {
    needs.host = sum_of(needs.host, product_of(batches.count(), batches.host_bytes));
  }
  needs.gpus = gpus_;
  needs.workspace_planned_for = workspace.planned_for;
  needs.device_memory = device_memory_;
  return needs;
}

void GpuPlanned::check_gpus(const Platform& platform) const {
  if (gpus_ <= platform.devices()) return;
  const std::vector<int> possible = possible_gpus_each(source(), platform.devices(), options_, processes_.placement);
  fail_resource(std::to_string(gpus_) + " GPUs are asked for (mesh.workers, --workers), and there are " +
                    std::to_string(platform.devices()),
                possible.empty() ? "" : "--workers " + std::to_string(possible.back()) + " would do");
}

std::unique_ptr<Module> GpuPlanned::load() && {
  Platform* platform = nullptr;
  run_in_all(processes_, [&] {
    platform = &open_();
    check_gpus(*platform);
  });
  check_equal_gpus(processes_, gpus_);
  plan_other_gpus(plans_, source(), gpus_, options_);
  return load_module(take_source(), *platform, std::move(plans_), options_, processes_);
}

}  // namespace

std::unique_ptr<Planned> GpuBackend::plan_on(int gpus, Source source, Processes processes) const {
  return std::make_unique<GpuPlanned>(std::move(source), processes, gpus, device_memory(), open_, options_);
}

std::unique_ptr<Planned> GpuBackend::plan(Source source, Processes processes) const {
  const int gpus = gpus_for(source, processes.placement);
  return plan_on(gpus, std::move(source), processes);
}

std::optional<int> GpuBackend::fewest_workers_that_fit(const Source& source, const Processes& processes,
                                                       std::size_t bytes) const {
  constexpr int most = 64;
  const int now = gpus_for(source, processes.placement);
  for (const int gpus : possible_gpus_each(source, most, options_, processes.placement)) {
    if (gpus <= now) continue;
    if (plan_on(gpus, source, processes)->needs().total() / static_cast<std::size_t>(gpus) <= bytes) return gpus;
  }
  return std::nullopt;
}

}  // namespace pmaptrain::gpu
