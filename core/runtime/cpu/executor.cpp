#include "core/runtime/cpu/executor.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "core/base/clock.h"
#include "core/base/machine.h"
#include "core/base/signals.h"
#include "core/runtime/cpu/worker.h"

namespace pmaptrain {

struct CpuExecutor::Impl {
  Impl(Plan given, const CpuOptions& options)
      : plan(std::move(given)),
        count(std::max(1, options.workers)),
        memory(plan, count),
        spins(may_spin(count, allowed_cores())),
        barrier(count, spins),
        host(count, spins) {
    fill_constants();
    workers.resize(static_cast<std::size_t>(count));
    try {
      const BlockSignals blocked;
      for (int w = 1; w < count; ++w) threads.emplace_back([this, w, &options] { serve(w, options); });
    } catch (const std::system_error& error) {
      const std::size_t failed = threads.size() + 2;  // the first is the host's own
      stop();
      fail_resource("thread " + std::to_string(failed) + " of " + std::to_string(count) +
                        " could not be started: " + error.code().message(),
                    "fewer workers (mesh.workers, --workers) need fewer threads");
    }
    guarded([&] { workers[0] = std::make_unique<Worker>(plan, memory, maker(options), 0, count); });
    meet();
    if (failure) {
      stop();
      rethrow();
    }
  }

  ~Impl() { stop(); }

  void fill_constants() {
    for (const auto& [index, equation] : plan.constants) {
      const Type& type = plan.program->type(equation->results.front());
      const Array array{&type, memory.address(buffer(index), 0, 0, 0)};
      kernels_of(equation->op).reference(equation->op.data(), {{}, std::span(&array, 1)});
    }
    for (const auto& [index, equation] : plan.coordinates) {
      for (std::int64_t d = 0; d < plan.program->mesh.devices(); ++d) {
        const auto coordinate =
            static_cast<std::int32_t>(plan.program->mesh.position(d, collective_axes(equation->op)));
        std::memcpy(memory.address(buffer(index), 0, d, 0), &coordinate, sizeof coordinate);
      }
    }
  }

  static MakeKernel maker(const CpuOptions& options) {
    if (options.make_kernel) return options.make_kernel;
    return [choice = options.kernels](const Op& op, const CpuRequest& request) {
      return make_cpu_kernel(op, request, choice);
    };
  }

  const Buffer& buffer(int index) const { return plan.buffers[static_cast<std::size_t>(index)]; }

  // Runs f; the first exception of any worker is kept, and all waits end.
  template <class F>
  void guarded(F&& f) noexcept {
    try {
      f();
    } catch (const BrokenBarrier&) {
    } catch (...) {
      const std::scoped_lock lock(failure_mutex);
      if (!failure) failure = std::current_exception();
      barrier.break_all();
    }
  }

  void meet() { host.arrive_and_wait(); }

  void rethrow() {
    const std::scoped_lock lock(failure_mutex);
    if (failure) std::rethrow_exception(failure);
  }

  // A worker's thread: makes its kernels, then runs what the host asks for until there is no more.
  void serve(int w, const CpuOptions& options) noexcept {
    // The options live until the constructor has met all workers.
    guarded([&] {
      workers[static_cast<std::size_t>(w)] = std::make_unique<Worker>(plan, memory, maker(options), w, count);
    });
    try {
      while (true) {
        meet();  // the host has seen what was done
        meet();  // the host asks for more
        if (steps < 0) return;
        profiles.empty() ? run_steps(w) : profile_steps(w);
      }
    } catch (const BrokenBarrier&) {  // the host could not start all threads
    }
  }

  void run_steps(int w) noexcept {
    guarded([&] {
      for (std::int64_t i = 0; i < steps; ++i) {
        workers[static_cast<std::size_t>(w)]->run_step(static_cast<int>((first_step + i) & 1), barrier);
        if (plan.boundary_barrier) barrier.arrive_and_wait();
      }
    });
  }

  void profile_steps(int w) noexcept {
    guarded([&] {
      StepTimes& profile = profiles[static_cast<std::size_t>(w)];
      const Clock::time_point begin = Clock::now();
      for (std::int64_t i = 0; i < steps; ++i) {
        workers[static_cast<std::size_t>(w)]->profile_step(static_cast<int>((first_step + i) & 1), barrier,
                                                           profile.seconds);
        if (plan.boundary_barrier) barrier.arrive_and_wait();
      }
      profile.wall_seconds = seconds_since(begin);
    });
  }

  StepTimes profile(std::int64_t count_of_steps) {
    rethrow();
    if (count_of_steps < 1) return {};
    steps = count_of_steps;
    profiles.resize(static_cast<std::size_t>(count));
    meet();
    profile_steps(0);
    meet();
    first_step += count_of_steps;
    rethrow();
    StepTimes all = profiles.front();
    for (std::size_t w = 1; w < profiles.size(); ++w) {
      all.wall_seconds = std::max(all.wall_seconds, profiles[w].wall_seconds);
      for (const auto& [step, seconds] : profiles[w].seconds) all.seconds[step] += seconds;
    }
    profiles.clear();
    return all;
  }

  void run(std::int64_t count_of_steps) {
    rethrow();
    if (count_of_steps < 1) return;
    steps = count_of_steps;
    meet();
    run_steps(0);
    meet();
    first_step += count_of_steps;
    rethrow();
  }

  void stop() {
    if (threads.empty()) return;
    if (static_cast<int>(threads.size()) + 1 < count) {
      host.break_all();
    } else {
      steps = -1;
      meet();
    }
    for (std::thread& thread : threads) thread.join();
    threads.clear();
  }

  std::size_t input_index(std::string_view name) const {
    for (std::size_t i = 0; i < plan.program->inputs.size(); ++i) {
      if (plan.program->inputs[i].name == name) return i;
    }
    fail_running("the program has no input '" + std::string(name) + "'");
  }

  // Calls f(memory) for every copy of a buffer that `device` reads (all devices: -1).
  template <class F>
  void for_each_copy(const Buffer& b, std::int64_t device, F&& f) const {
    if (b.home == Home::worker) {
      for (int w = 0; w < count; ++w) f(memory.address(b, w, 0, 0));
    } else if (b.home == Home::device && device < 0) {
      for (std::int64_t d = 0; d < plan.program->mesh.devices(); ++d) f(memory.address(b, 0, d, 0));
    } else {
      f(memory.address(b, 0, std::max<std::int64_t>(device, 0), 0));
    }
  }

  void set(std::string_view name, std::int64_t device, std::span<const std::byte> value) {
    const Buffer& b = buffer(plan.inputs[input_index(name)]);
    if (value.size() != b.slice_bytes()) {
      fail_running("input '" + std::string(name) + "' takes " + std::to_string(b.slice_bytes()) + " bytes, not " +
                   std::to_string(value.size()));
    }
    for_each_copy(b, device, [&](std::byte* copy) { std::copy(value.begin(), value.end(), copy); });
  }

  Plan plan;
  const int count;
  Memory memory;
  const bool spins;
  Barrier barrier;  // among workers, within steps
  Barrier host;     // between the host and the workers, twice a run
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<std::thread> threads;
  std::int64_t steps = 0;  // what the host asks for; -1: end
  std::int64_t first_step = 0;
  std::vector<StepTimes> profiles;  // by worker, while the host asks for a profile; else empty
  std::mutex failure_mutex;
  std::exception_ptr failure;
};

CpuExecutor::CpuExecutor(Plan plan, const CpuOptions& options)
    : impl_(std::make_unique<Impl>(std::move(plan), options)) {}
CpuExecutor::~CpuExecutor() = default;

const Plan& CpuExecutor::plan() const { return impl_->plan; }
int CpuExecutor::workers() const { return impl_->count; }

void CpuExecutor::set(std::string_view input, std::span<const std::byte> value) { impl_->set(input, -1, value); }

void CpuExecutor::set(std::string_view input, std::int64_t device, std::span<const std::byte> value) {
  const Buffer& buffer = impl_->buffer(impl_->plan.inputs[impl_->input_index(input)]);
  if (!buffer.stacked()) fail_running("input '" + std::string(input) + "' is kept once for all devices");
  impl_->set(input, device, value);
}

std::span<std::byte> CpuExecutor::stacked(std::string_view input) {
  const Buffer& buffer = impl_->buffer(impl_->plan.inputs[impl_->input_index(input)]);
  if (!buffer.stacked()) return {};
  const auto devices = static_cast<std::size_t>(impl_->plan.program->mesh.devices());
  return {impl_->memory.address(buffer, 0, 0, 0), devices * buffer.slice_bytes()};
}

std::span<const std::byte> CpuExecutor::input(std::string_view name, std::int64_t device) const {
  const Buffer& buffer = impl_->buffer(impl_->plan.inputs[impl_->input_index(name)]);
  return {impl_->memory.address(buffer, 0, device, 0), buffer.slice_bytes()};
}

std::span<const std::byte> CpuExecutor::output(std::string_view name, std::int64_t device) const {
  const Program& program = *impl_->plan.program;
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    if (program.outputs[i].name != name) continue;
    const Buffer& buffer = impl_->buffer(impl_->plan.outputs[i]);
    return {impl_->memory.address(buffer, 0, device, 0), buffer.slice_bytes()};
  }
  fail_running("the program has no output '" + std::string(name) + "'");
}

void CpuExecutor::run(std::int64_t steps) { impl_->run(steps); }

std::uint32_t CpuExecutor::meetings() const { return impl_->barrier.meetings(); }

std::size_t CpuExecutor::memory_bytes() const { return impl_->memory.bytes(); }

std::map<const Step*, KernelInfo> CpuExecutor::kernels() const {
  std::map<const Step*, KernelInfo> all;
  for (const auto& worker : impl_->workers) worker->collect_kernels(all);
  return all;
}

StepTimes CpuExecutor::profile(std::int64_t steps) { return impl_->profile(steps); }

}  // namespace pmaptrain
