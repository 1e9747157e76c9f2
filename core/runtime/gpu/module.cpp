// The module of the backend "cuda", on the GPUs of any Platform (CUDA or an emulation). Each GPU has a thread, which
// queues the steps of its part of the mesh.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/runtime/gpu/plans.h"
#include "core/runtime/gpu/ranks.h"
#include "core/runtime/gpu/report.h"
#include "core/runtime/gpu/worker.h"

namespace pmaptrain::gpu {
namespace {

WorkKind kind_of(const Command& command) {
  if (std::holds_alternative<Await>(command)) return WorkKind::wait;
  return stream_of(command) == Stream::communicate ? WorkKind::collective : WorkKind::instruction;
}

// A number that is unique among the modules of the process.
int next_number() {
  static std::atomic<int> last = 0;
  return ++last;
}

// The message of the current exception, without what may help.
std::string current_message() {
  try {
    throw;
  } catch (const Error& error) {
    return error.diagnostics().front().message;
  } catch (const std::exception& error) {
    return error.what();
  }
}

// What a module has on GPUs. It may outlive the module: see end().
struct Running {
  struct EntryState {
    std::byte* batches = nullptr;  // pinned host memory in the order of BatchLayout
    int last_slot = 0;             // slot of the last step that was queued
  };

  Running(Platform& of, Plans given, const GpuOptions& options)
      : platform(of), plans(std::move(given)), make_kernel(options.make_kernel), progress(count()) {}
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  int count() const { return static_cast<int>(plans.by_gpu.size()); }

  void start(const Processes& processes) {
    if (const std::optional<std::string> failure = platform.given_up()) {
      fail_running("the GPUs of this process take no more work, since one has failed: " + *failure,
                   "start the program again");
    }
    {
      const std::lock_guard lock(workers_mutex);
      for (int gpu = 0; gpu < count(); ++gpu) {
        const std::vector<Plan>& mine = plans.by_gpu[static_cast<std::size_t>(gpu)];
        workers.push_back(std::make_unique<Worker>(
            platform, gpu, number, GpuRange{plans.first_rank, count()}, progress,
            [this, &mine, gpu](Device& device) {
              if (gpu == 0) pin_batches(device);
              return std::make_unique<Executor>(device, mine, plans.sizes, make_kernel, count());
            },
            [this](std::int64_t ticket) { fail(ticket); }));
      }
    }
    // A process that creates communicators waits for all others. So what may fail in one of them alone comes before.
    run_in_all(processes, [&] { progress.wait(0); });
    check_collectives(processes);
    const CommunicatorIds ids = exchange_communicator_ids(plans, platform, processes);
    is_connected = true;
    wait(add_to_all([ids](Executor& executor) { executor.connect(ids); }), processes.transport);
    for (const std::vector<Plan>& of_gpu : plans.by_gpu) {
      std::map<const Command*, std::int32_t>& numbers = rows.emplace_back();
      for (const Plan& plan : of_gpu) {
        std::int32_t row = 0;
        for_each_command(plan.commands, [&](const Command& command) { numbers.emplace(&command, row++); });
      }
    }
  }

  void check_collectives(const Processes& processes) const {
    std::vector<std::vector<Rendezvous>> of_gpus;
    for (const std::vector<Plan>& of_gpu : plans.by_gpu) of_gpus.push_back(collectives_of(of_gpu));
    check_rendezvous(processes, "GPU", plans.first_rank, of_gpus);
  }

  // Returns when the GPUs of this process have done the work of the ticket. What GPUs do together does not end if one
  // of them, or its process, is gone. So this looks after both.
  void wait(Ticket ticket, Transport* transport) {
    constexpr std::chrono::milliseconds interval(50);
    const auto watch = [&](Transport::Wait wait) {
      if (transport != nullptr) transport->watch(wait);
    };
    try {
      if (progress.wait_for(ticket.number, interval)) return;
      watch(Transport::Wait::begins);
      const std::shared_ptr<void> at_the_end(nullptr, [&](void*) { watch(Transport::Wait::ends); });
      do {
        watch(Transport::Wait::goes_on);
        look_for_failures();
      } while (!progress.wait_for(ticket.number, interval));
    } catch (...) {
      fail(ticket.number);
      progress.wait(ticket.number);  // until other workers use nothing of the caller's; throws the first failure
    }
  }

  // Throws Error (failed) if a worker is stuck in a call, or if another module has given the GPUs up.
  void look_for_failures() const {
    for (const std::unique_ptr<Worker>& worker : workers) worker->check_for_late_call();
    if (const std::optional<std::string> failure = platform.given_up()) fail_running(*failure);
  }

  // Takes the current exception for the failure of this ticket, unless there has been one before.
  void fail(std::int64_t ticket) {
    if (progress.fail(ticket, std::current_exception())) stop_after(current_message());
  }

  // Makes all workers leave what they do after the first failure, of a worker or of another process.
  void stop_after(const std::string& failure) {
    const bool may_hold_others = is_connected && plans.by_gpu.front().front().division.gpus() > 1;
    if (may_hold_others) platform.give_up(failure);
    const std::lock_guard lock(workers_mutex);
    for (const std::unique_ptr<Worker>& worker : workers) worker->abort("another GPU has failed");
  }

  // Ends the workers and destroys the devices. Destroying a device may wait for work of other GPUs, so this happens
  // when all workers have finished or failed. Device 0 is destroyed last, because it has allocated the pinned batches,
  // which other devices may read. Once the GPUs are given up, everything stays as it is.
  static void end(std::unique_ptr<Running> running) {
    if (running->workers.empty()) return;  // refused before any began
    try {
      running->wait({running->tickets}, nullptr);
    } catch (...) {  // a failure of work that the module's user does not wait for
    }
    if (running->platform.given_up()) return static_cast<void>(running.release());
    for (auto worker = running->workers.rbegin(); worker != running->workers.rend(); ++worker) (*worker)->close();
  }

  // Allocates host memory for the batches of all entries. Called once, on the thread of the first GPU.
  void pin_batches(Device& device) {
    for (const BatchLayout& batches : plans.sizes.batches) {
      const std::size_t bytes = product_of(batches.count(), batches.host_bytes);
      entries.push_back({bytes > 0 ? device.pinned(bytes) : nullptr});
    }
  }

  // Queues `steps` steps on the batch in `slot`; with `each_slot`, one step on each of the `steps` slots from `slot`
  // on.
  Ticket submit(std::size_t entry, int slot, std::int64_t steps, bool each_slot,
                std::span<const std::int64_t> members) {
    const int count = each_slot ? static_cast<int>(steps) : 1;
    entries[entry].last_slot = slot + count - 1;
    return add_to_all([=, this, who = std::vector(members.begin(), members.end())](Executor& executor) {
      executor.upload(entry, slot, count, who, entries[entry].batches);
      for (const std::int64_t member : who) executor.run({entry, slot, member}, steps, each_slot);
      executor.release(entry, slot, count);
    });
  }

  Ticket add_to_all(const std::function<void(Executor&)>& work) {
    ++tickets;
    for (const std::unique_ptr<Worker>& worker : workers) worker->add(tickets, work);
    return {tickets};
  }
  // Adds work for one GPU. The other workers get work that does nothing, because a ticket is done when all workers have
  // done it.
  Ticket add_to_one(int gpu, const std::function<void(Executor&)>& work,
                    const std::function<void(Executor&)>& finish = {}) {
    ++tickets;
    for (std::size_t i = 0; i < workers.size(); ++i) {
      if (static_cast<int>(i) == gpu) {
        workers[i]->add(tickets, work, finish);
      } else {
        workers[i]->add(tickets, [](Executor&) {});
      }
    }
    return {tickets};
  }
  // The GPU of this process, and its local device, that have the instance of a value that a device has.
  std::pair<int, std::int64_t> reader_of(std::size_t e, std::int64_t device, AxisSet axes) const {
    const Division& division = plans.by_gpu.front()[e].division;
    const int gpu = division.gpu_of(device) - plans.first_rank;
    if (gpu >= 0 && gpu < count()) return {gpu, division.local_of(device)};
    const Mesh& mesh = plans.programs[e]->mesh;
    for (int own = 0; own < count(); ++own) {
      for (std::int64_t local = 0; local < division.local.devices(); ++local) {
        const std::int64_t other = division.device_of(plans.first_rank + own, local);
        if (mesh.position(other, axes) == mesh.position(device, axes)) return {own, local};
      }
    }
    fail_running("the value of device " + std::to_string(device) + " is on a GPU of another process");
  }

  const int number = next_number();
  Platform& platform;
  const Plans plans;
  const MakeKernel make_kernel;
  // By GPU: the index of each command in instructions().
  std::vector<std::map<const Command*, std::int32_t>> rows;
  Progress progress;
  std::vector<EntryState> entries;
  std::atomic<bool> is_connected = false;  // whether ranks may wait for one another in calls of a library
  std::mutex workers_mutex;
  std::vector<std::unique_ptr<Worker>> workers;
  std::int64_t tickets = 0;
  std::mutex trace_mutex;  // protects the trace, which several workers write
};

class GpuModule final : public Module {
 public:
  GpuModule(Source source, Platform& platform, Plans plans, const GpuOptions& options, Processes processes)
      : Module(std::move(source), processes), running_(std::make_unique<Running>(platform, std::move(plans), options)) {
    try {
      running_->start(processes);
    } catch (...) {
      running_->fail(0);
      Running::end(std::move(running_));
      throw;
    }
  }
  ~GpuModule() override {
    if (running_) Running::end(std::move(running_));
  }
  GpuModule(const GpuModule&) = delete;
  GpuModule& operator=(const GpuModule&) = delete;

  std::span<std::byte> batch(std::size_t entry, int slot, std::string_view input, std::int64_t member) override;
  Ticket submit(std::size_t entry, int slot, std::int64_t steps, std::span<const std::int64_t> members) override {
    return running_->submit(entry, slot, steps, false, members_or_all(members));
  }
  Ticket submit_each(std::size_t entry, int slot, int count, std::span<const std::int64_t> members) override {
    return running_->submit(entry, slot, count, true, members_or_all(members));
  }
  int steps_per_group(std::size_t entry) const override { return running_->plans.sizes.batches[entry].group; }
  int groups_ahead() const override { return 4; }
  Ticket submit_traced(std::size_t entry, int slot, std::span<const std::int64_t> members, StepTrace& trace) override;
  Ticket write_slices(Handle input, DeviceOfMember to, std::span<const std::byte> bytes,
                      std::optional<std::size_t> offset) override;
  Ticket read_slice(Handle value, DeviceOfMember from, std::span<std::byte> into, std::size_t offset) override;
  bool done(Ticket ticket) override { return running_->progress.done(ticket.number); }
  void wait(Ticket ticket) override { running_->wait(ticket, processes().transport); }
  int workers() const override { return running_->count(); }
  std::int64_t barriers_per_step(std::size_t entry) const override { return barriers_of(plan(entry)); }
  std::size_t allocated() const override;
  std::vector<InstructionReport> instructions(std::size_t entry) const override {
    const Executor& first = running_->workers.front()->executor();
    return instructions_of(plan(entry), running_->make_kernel,
                           [&first](const Launch& launch) { return first.runs_own(launch); });
  }
  std::vector<StageReport> stages(std::size_t entry) const override {
    return stages_of(plan(entry), running_->make_kernel);
  }
  Profile profile(std::size_t entry, int slot, std::int64_t steps) override;
  std::vector<LoadTime> load_times() const override {  // of the first GPU
    return running_->workers.front()->executor().load_times();
  }

 private:
  const Plan& plan(std::size_t entry) const { return running_->plans.by_gpu.front()[entry]; }  // of the first GPU

  std::unique_ptr<Running> running_;
};

std::span<std::byte> GpuModule::batch(std::size_t entry, int slot, std::string_view input, std::int64_t member) {
  const BatchLayout& batches = running_->plans.sizes.batches[entry];
  const std::vector<Input>& inputs = program(entry).inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].group != Group::batch || inputs[i].name != input) continue;
    std::byte* const memory = running_->entries[entry].batches + batches.index(slot, member) * batches.host_bytes;
    return {memory + batches.host_offsets[i], host_bytes(program(entry), inputs[i], share(entry))};
  }
  return {};
}

Ticket GpuModule::submit_traced(std::size_t entry, int slot, std::span<const std::int64_t> members, StepTrace& trace) {
  const std::span<const std::int64_t> named = members_or_all(members);
  running_->entries[entry].last_slot = slot;
  trace.workers.resize(running_->workers.size());
  trace.begin = trace.end = Clock::now();
  const Ticket ticket = running_->add_to_all([=, this, &trace,
                                              who = std::vector(named.begin(), named.end())](Executor& executor) {
    const Plan& plan = executor.plan(entry);
    const auto worker = static_cast<std::size_t>(plan.gpu - running_->plans.first_rank);
    const auto& rows = running_->rows[worker];
    std::vector<WorkSpan>& spans = trace.workers[worker];
    executor.upload(entry, slot, 1, who, running_->entries[entry].batches);
    const Mesh& mesh = plan.program->mesh;
    for (const std::int64_t member : who) {
      const std::vector<Executor::TimedCommand> times = executor.run_timed({entry, slot, member});
      const Clock::time_point end = Clock::now();
      double seconds = 0;
      for (const Executor::TimedCommand& timed : times) seconds = std::max(seconds, timed.end);
      const auto at = [&](double since_begin) {
        return end - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds - since_begin));
      };
      const InstanceRange all{mesh.all(), plan.division.device_of(plan.gpu, 0), plan.division.local.devices()};
      spans.push_back({WorkKind::task, -1, member, all, at(0), end});
      for (const auto& [command, from, to] : times) {
        spans.push_back({kind_of(*command), rows.at(command), member, {}, at(from), at(to)});
      }
    }
    executor.release(entry, slot, 1);
    const std::lock_guard lock(running_->trace_mutex);
    trace.end = std::max(trace.end, Clock::now());
  });
  return ticket;
}

Ticket GpuModule::write_slices(Handle input, DeviceOfMember to, std::span<const std::byte> bytes,
                               std::optional<std::size_t> offset) {
  const auto e = static_cast<std::size_t>(value(input).entry);
  const auto index = static_cast<std::size_t>(value(input).index);
  const std::size_t begin = value(input).begin + offset.value_or(0);
  return running_->add_to_all([=, this](Executor& executor) {
    const Plan& plan = executor.plan(e);
    const Buffer& buffer = plan.buffer(plan.inputs[index]);
    std::span<const std::int64_t> members = to.member == every_member ? members_or_all({}) : std::span(&to.member, 1);
    if (buffer.pool == Pool::data) members = members.first(1);
    for (const std::int64_t member : members) {
      for (std::int64_t slice = 0; slice < buffer.slices; ++slice) {
        const std::int64_t device = plan.division.device_of(plan.gpu, plan.first_reader_of(buffer, slice));
        const Mesh& mesh = plan.program->mesh;
        const bool is_meant =
            to.device == every_device || mesh.position(to.device, buffer.axes) == mesh.position(device, buffer.axes);
        if (is_meant) executor.write({e, 0, member}, plan.inputs[index], slice, bytes, begin);
      }
    }
  });
}

Ticket GpuModule::read_slice(Handle handle, DeviceOfMember from, std::span<std::byte> into, std::size_t offset) {
  const ModuleValue& of = value(handle);
  offset += of.begin;
  const auto e = static_cast<std::size_t>(of.entry);
  const Plan& plan = running_->plans.by_gpu.front()[e];  // all have the same buffers
  const int index = (of.is_input ? plan.inputs : plan.outputs)[static_cast<std::size_t>(of.index)];
  const auto [gpu, local_device] = running_->reader_of(e, from.device, plan.buffer(index).axes);
  const std::int64_t slice = plan.slice_of(plan.buffer(index), local_device);
  const StepId step{e, running_->entries[e].last_slot, from.member};
  // Large values are read at once: no later work is queued in the meantime. So are batches, which later work may
  // replace.
  if (into.empty() || into.size() > Executor::max_small_read || plan.buffer(index).pool == Pool::batch) {
    return running_->add_to_one(gpu, [=](Executor& executor) { executor.read(step, index, slice, offset, into); });
  }
  // Small values are read asynchronously: later work may be queued before the copy is done.
  const auto copied = std::make_shared<const std::byte*>(nullptr);
  return running_->add_to_one(
      gpu, [=](Executor& executor) { *copied = executor.queue_read(step, index, slice, offset, into.size()); },
      [=](Executor&) { std::copy_n(*copied, into.size(), into.begin()); });
}

std::size_t GpuModule::allocated() const {
  std::size_t bytes = 0;
  for (const std::unique_ptr<Worker>& worker : running_->workers) bytes = sum_of(bytes, worker->executor().allocated());
  return bytes;
}

Profile GpuModule::profile(std::size_t entry, int slot, std::int64_t steps) {
  Profile profile;
  profile.seconds.resize(instructions(entry).size());
  StepTrace trace;
  const Clock::time_point begin = Clock::now();
  for (std::int64_t i = 0; i < steps; ++i) {
    trace = {};
    wait(submit_traced(entry, slot, {}, trace));
    for (const WorkSpan& span : trace.workers.front()) {
      if (span.row < 0) continue;
      profile.seconds[static_cast<std::size_t>(span.row)] +=
          seconds_between(span.begin, span.end) / static_cast<double>(steps);
    }
  }
  profile.wall_seconds = seconds_since(begin) / static_cast<double>(steps);
  return profile;
}

}  // namespace

std::unique_ptr<Module> load_module(Source source, Platform& platform, Plans plans, const GpuOptions& options,
                                    Processes processes) {
  return std::make_unique<GpuModule>(std::move(source), platform, std::move(plans), options, processes);
}

}  // namespace pmaptrain::gpu
