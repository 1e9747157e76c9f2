#include "core/runtime/cpu/module.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <set>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/ops/all.h"
#include "core/runtime/cpu/parallelism.h"
#include "core/runtime/cpu/report.h"
#include "core/runtime/cpu/team.h"
#include "core/runtime/cpu/worker.h"

namespace pmaptrain::cpu {

struct CpuModule::Impl {
  struct EntryState {
    Plan plan;
    std::vector<std::unique_ptr<BoundPlan>> bound;  // by worker, as are the following members
    std::vector<std::unique_ptr<Worker>> workers;
    std::unique_ptr<Claims> claims;
    int last_slot = 0;
    std::int64_t runs = 0;  // the number of steps of members so far
    // The index of each instruction in instructions(); filled by the first trace.
    std::map<const Instruction*, std::int32_t> rows;
  };

  Impl(Plans plans, const CpuBackendOptions& options)
      : kernels{options.kernels, options.make_kernel},
        inputs(std::move(plans.inputs)),
        worker_per_member(plans.sizes.worker_per_member),
        first_member(plans.member_share.members().first),
        team(plans.sizes.workers) {
    const auto count = static_cast<std::size_t>(team.count());
    for (Plan& plan : plans.entries) {
      entries.emplace_back().plan = std::move(plan);
      entries.back().bound.resize(count);
    }
    try {
      team.run([&](int w) {
        for (EntryState& entry : entries) {
          entry.bound[static_cast<std::size_t>(w)] = std::make_unique<BoundPlan>(
              entry.plan, kernels, plans.processes.transport, plans.member_share.first_process());
        }
      });
    } catch (const std::bad_alloc&) {
      fail_resource("no memory is left to make the program's kernels", "a smaller batch or model needs less");
    }
    check_messages(plans.processes);
    for (const EntryState& entry : entries) {
      plans.sizes.scratch = std::max(plans.sizes.scratch, entry.bound.front()->scratch_bytes());
    }
    memory.emplace(plans.sizes);
    team.run([&](int w) { memory->populate(w, team.count()); });
    for (std::size_t e = 0; e < entries.size(); ++e) {
      EntryState& entry = entries[e];
      for (int w = 0; w < team.count(); ++w) {
        BoundPlan& bound = *entry.bound[static_cast<std::size_t>(w)];
        const int sharing = worker_per_member ? 1 : team.count();
        entry.workers.push_back(std::make_unique<Worker>(bound, *memory, e, w, sharing, plans.sizes.members));
      }
      entry.claims = std::make_unique<Claims>(entry.bound.front()->stages());
      for (std::int64_t m = 0; m < plans.sizes.members; ++m) fill_constants(e, m);
    }
  }

  void check_messages(const Processes& processes) const {
    if (processes.transport == nullptr) return;
    const int process = processes.placement.process;
    std::vector<Rendezvous> own;
    for (const EntryState& entry : entries) add_messages(*entry.bound.front(), process, own);
    check_rendezvous(processes, "process", process, {own});
  }

  const Buffer& buffer(std::size_t e, int index) const {
    return entries[e].plan.buffers[static_cast<std::size_t>(index)];
  }

  // `of.member` counts from the first member of this process.
  std::byte* address(const Buffer& b, std::size_t e, int worker, DeviceOfMember of) const {
    std::byte* const base = b.pool == Pool::batch
                                ? memory->batch(e, entries[e].last_slot, of.member)
                                : memory->bases(worker, of.member, e)[static_cast<std::size_t>(base_of(b))];
    const std::int64_t instance =
        entries[e].plan.program->mesh.position(of.device, b.axes) - entries[e].plan.share().instances(b.axes).first;
    return base + b.offset + static_cast<std::size_t>(instance) * b.slice_bytes();
  }

  // One device for each instance of a buffer that this process has.
  std::vector<std::int64_t> devices_with_instances(std::size_t e, const Buffer& b) const {
    const Plan& plan = entries[e].plan;
    const IndexRange instances = plan.share().instances(b.axes);
    std::vector<std::int64_t> devices;
    for (std::int64_t i = instances.first; i < instances.first + instances.count; ++i) {
      devices.push_back(plan.program->mesh.device_at(i, b.axes));
    }
    return devices;
  }

  void fill_constants(std::size_t e, std::int64_t member) {
    const Plan& plan = entries[e].plan;
    for (const auto& [index, equation] : plan.constants) {
      // Equations that lowering has added have no results, so the type comes from the op.
      const std::vector<Type> types = equation->op.infer({plan.program->mesh, {}});
      const Array array{&types.front(), address(buffer(e, index), e, 0, {plan.share().devices().first, member})};
      kernels_of(equation->op).reference(equation->op.data(), {{}, std::span(&array, 1)});
    }
    for (const auto& [index, equation] : plan.coordinates) {
      for (const std::int64_t d : devices_with_instances(e, buffer(e, index))) {
        const auto coordinate = static_cast<std::int32_t>(plan.program->mesh.position(d, equation->op.axes()));
        std::memcpy(address(buffer(e, index), e, 0, {d, member}), &coordinate, sizeof coordinate);
      }
    }
  }

  // Calls f(worker number, StepId) on every worker for each step of each member. After a step, the workers meet at a
  // barrier if the plan requires it. If worker_per_member, each step is run by one worker.
  template <class F>
  void run(std::size_t e, int slot, std::int64_t steps, std::span<const std::int64_t> members, F&& f) {
    EntryState& entry = entries[e];
    entry.last_slot = slot;
    has_run = true;
    if (worker_per_member) return run_by_member(slot, steps, members, f);
    const bool meet = entry.plan.barrier_after_step && team.count() > 1;
    team.run([&](int w) {
      std::int64_t number = entry.runs;
      for (std::int64_t i = 0; i < steps; ++i) {
        for (std::int64_t member : members) {
          // A single worker, and workers that meet after the step, need only one set of accumulators.
          const int parity = team.count() > 1 && !meet ? static_cast<int>(number & 1) : 0;
          f(static_cast<std::size_t>(w),
            StepId{static_cast<std::uint32_t>(++number), parity, slot, member - first_member});
          if (meet) team.barrier().arrive_and_wait();
        }
      }
    });
    entry.runs += steps * static_cast<std::int64_t>(members.size());
  }

  // Each worker takes the next member that no worker has taken yet, and runs all its steps, until there are no more.
  template <class F>
  void run_by_member(int slot, std::int64_t steps, std::span<const std::int64_t> members, F&& f) {
    next_member.store(0, std::memory_order_relaxed);
    team.run([&](int w) {
      while (true) {
        const std::size_t at = next_member.fetch_add(1, std::memory_order_relaxed);
        if (at >= members.size()) return;
        const StepId step{1, 0, slot, members[at] - first_member};
        for (std::int64_t i = 0; i < steps; ++i) f(static_cast<std::size_t>(w), step);
      }
    });
  }

  // Runs f and stores its exception for wait().
  template <class F>
  Ticket carry_out(F&& f) noexcept {
    ++tickets;
    if (failure) return {tickets};
    try {
      f();
    } catch (...) {
      failure = std::current_exception();
      failed = tickets;
    }
    return {tickets};
  }

  const KernelFactory kernels;
  const SharedInputs inputs;
  std::vector<EntryState> entries;
  std::optional<Memory> memory;
  const bool worker_per_member;
  const std::int64_t first_member;  // of this process
  std::atomic<std::size_t> next_member{0};
  Team team;
  // Whether the memory of an input may differ from what was allocated, which is zero.
  std::set<std::string_view> written;  // the names of inputs that were written
  bool has_run = false;                // whether an entry has run, which may have updated any input
  std::int64_t tickets = 0;            // the number of the last ticket
  std::int64_t failed = 0;             // the first ticket whose work failed
  std::exception_ptr failure;
};

CpuModule::CpuModule(Source source, Plans plans, const CpuBackendOptions& options)
    : Module(std::move(source), plans.processes, true), impl_(std::make_unique<Impl>(std::move(plans), options)) {}
CpuModule::CpuModule(const Source& source, const CpuBackendOptions& options)
    : CpuModule(source, make_plans(source, options), options) {}
CpuModule::~CpuModule() = default;

std::span<std::byte> CpuModule::batch(std::size_t entry, int slot, std::string_view input, std::int64_t member) {
  const Plan& plan = impl_->entries[entry].plan;
  const Input* const found = plan.program->find_input(input);
  if (found == nullptr || found->group != Group::batch) return {};
  const Buffer& b = impl_->buffer(entry, plan.inputs[static_cast<std::size_t>(found - plan.program->inputs.data())]);
  const auto slices = static_cast<std::size_t>(slices_of(b, plan.share()));
  const std::int64_t of = source().entries[entry].batch_by_member ? member - impl_->first_member : 0;
  return {impl_->memory->batch(entry, slot, of) + b.offset, slices * b.slice_bytes()};
}

Ticket CpuModule::submit(std::size_t entry, int slot, std::int64_t steps, std::span<const std::int64_t> members) {
  return impl_->carry_out([&] {
    Impl::EntryState& state = impl_->entries[entry];
    impl_->run(entry, slot, steps, members_or_all(members), [&](std::size_t w, const StepId& step) {
      state.workers[w]->run_step(step, *state.claims, impl_->team.barrier());
    });
  });
}

Ticket CpuModule::submit_traced(std::size_t entry, int slot, std::span<const std::int64_t> members, StepTrace& trace) {
  return impl_->carry_out([&] {
    Impl::EntryState& state = impl_->entries[entry];
    if (state.rows.empty()) {
      for (const Instruction* const instruction : report_of(state.plan, *state.bound.front()).instructions) {
        state.rows.emplace(instruction, static_cast<std::int32_t>(state.rows.size()));
      }
    }
    trace.workers.resize(static_cast<std::size_t>(impl_->team.count()));
    trace.begin = Clock::now();
    impl_->run(entry, slot, 1, members_or_all(members), [&](std::size_t w, const StepId& step) {
      state.workers[w]->trace_step(step, *state.claims, impl_->team.barrier(), state.rows, trace.workers[w]);
    });
    trace.end = Clock::now();
  });
}

std::string_view CpuModule::name_of(Handle input) const {
  const ModuleValue& found = value(input);
  return program(static_cast<std::size_t>(found.entry)).inputs[static_cast<std::size_t>(found.index)].name;
}

template <class F>
void CpuModule::for_each_copy(Handle input, DeviceOfMember of, F&& f) {
  const ModuleValue& found = value(input);
  const auto e = static_cast<std::size_t>(found.entry);
  const Buffer& b = impl_->inputs.buffers.find(name_of(input))->second;
  const int copies = b.pool == Pool::worker && !impl_->worker_per_member ? impl_->team.count() : 1;
  const std::vector<std::int64_t> devices =
      of.device == every_device ? impl_->devices_with_instances(e, b) : std::vector{of.device};
  const auto of_member = [&](std::int64_t member) {
    for (int w = 0; w < copies; ++w) {
      for (const std::int64_t d : devices) f(impl_->address(b, e, w, {d, member - impl_->first_member}) + found.begin);
    }
  };
  if (of.member != every_member) return of_member(of.member);
  for (std::int64_t member : members_or_all({})) of_member(member);
}

Ticket CpuModule::write_slices(Handle input, DeviceOfMember to, std::span<const std::byte> bytes,
                               std::optional<std::size_t> offset) {
  return impl_->carry_out([&] {
    impl_->written.insert(name_of(input));
    for_each_copy(input, to,
                  [&](std::byte* copy) { std::copy(bytes.begin(), bytes.end(), copy + offset.value_or(0)); });
  });
}

void CpuModule::fill_slices(Handle input, std::int64_t member, const std::function<void(std::span<std::byte>)>& make) {
  const std::size_t size = slice_bytes(input);
  wait(impl_->carry_out([&] {
    check_write(input, {every_device, member}, size, std::nullopt);
    impl_->written.insert(name_of(input));
  }));
  // Not carried out as a ticket: if `make` throws, the module can still be used.
  const std::byte* made = nullptr;
  for_each_copy(input, {every_device, member}, [&](std::byte* copy) {
    if (made == nullptr) {
      make({copy, size});
      made = copy;
    } else {
      std::copy_n(made, size, copy);
    }
  });
}

void CpuModule::clear_slices(Handle input) {
  wait(impl_->carry_out([&] {
    if (!impl_->has_run && !impl_->written.contains(name_of(input))) return;
    for_each_copy(input, {every_device, every_member},
                  [&](std::byte* copy) { std::fill_n(copy, slice_bytes(input), std::byte{0}); });
  }));
}

Ticket CpuModule::read_slice(Handle handle, DeviceOfMember from, std::span<std::byte> into, std::size_t offset) {
  return impl_->carry_out([&] {
    const auto e = static_cast<std::size_t>(value(handle).entry);
    const Plan& plan = impl_->entries[e].plan;
    const std::vector<int>& buffers = value(handle).is_input ? plan.inputs : plan.outputs;
    const Buffer& b = impl_->buffer(e, buffers[static_cast<std::size_t>(value(handle).index)]);
    const DeviceOfMember here(from.device, from.member - impl_->first_member);
    const std::byte* const bytes = impl_->address(b, e, 0, here) + value(handle).begin + offset;
    std::copy(bytes, bytes + into.size(), into.begin());
  });
}

bool CpuModule::done(Ticket) { return true; }

void CpuModule::wait(Ticket ticket) {
  if (impl_->failure && ticket.number >= impl_->failed) std::rethrow_exception(impl_->failure);
}

std::size_t CpuModule::allocated() const {
  std::size_t bytes = impl_->memory->bytes();
  for (const Impl::EntryState& entry : impl_->entries) {
    for (const auto& bound : entry.bound) bytes += bound->command_bytes();
  }
  return bytes;
}

std::vector<InstructionReport> CpuModule::instructions(std::size_t entry) const {
  const Impl::EntryState& state = impl_->entries[entry];
  return report_of(state.plan, *state.bound.front()).rows;
}

std::vector<StageReport> CpuModule::stages(std::size_t entry) const {
  const Impl::EntryState& state = impl_->entries[entry];
  return parallelism_of(state.plan, *state.bound.front());
}

Profile CpuModule::profile(std::size_t entry, int slot, std::int64_t steps) {
  Impl::EntryState& state = impl_->entries[entry];
  const auto workers = static_cast<std::size_t>(impl_->team.count());
  std::vector<std::map<const Instruction*, double>> seconds(workers);
  const Clock::time_point begin = Clock::now();
  wait(impl_->carry_out([&] {
    impl_->run(entry, slot, steps, members_or_all({}), [&](std::size_t w, const StepId& step) {
      state.workers[w]->profile_step(step, *state.claims, impl_->team.barrier(), seconds[w]);
    });
  }));
  Profile profile;
  profile.wall_seconds = seconds_since(begin) / static_cast<double>(steps);
  for (const Instruction* instruction : report_of(state.plan, *state.bound.front()).instructions) {
    double sum = 0;
    for (const auto& of_worker : seconds) {
      const auto found = of_worker.find(instruction);
      if (found != of_worker.end()) sum += found->second;
    }
    profile.seconds.push_back(sum / static_cast<double>(steps) / static_cast<double>(workers));
  }
  return profile;
}

const Plan& CpuModule::plan(std::size_t entry) const { return impl_->entries[entry].plan; }
int CpuModule::workers() const { return impl_->team.count(); }
std::int64_t CpuModule::barriers_per_step(std::size_t entry) const {
  return impl_->worker_per_member ? 0 : plan(entry).barriers_per_step();
}
std::uint32_t CpuModule::barriers_passed() const { return impl_->team.barrier().completed_phases(); }
std::string CpuModule::kernel_shapes(std::size_t entry) const { return impl_->entries[entry].bound.front()->shapes(); }

}  // namespace pmaptrain::cpu
