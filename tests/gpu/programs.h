// Programs as text on emulated GPUs beside the interpreter, and their plans. Numbers are whole, so sums are exact in
// any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/runtime/gpu/plans.h"
#include "tests/catch.h"
#include "tests/emulated_gpu/platform.h"
#include "tests/runtime/programs.h"

namespace pmaptrain::test {

struct OnGpus {
  int gpus = 1;
  bool deterministic = true, private_copies = false;
  std::int64_t steps = 1;
  std::size_t message_bytes = gpu::PlanOptions{}.message_bytes;
  std::size_t least_exchanged = gpu::PlanOptions{}.least_exchanged;
  int blocks = 0;  // see gpu::PlanOptions

  gpu::PlanOptions plan() const;
  gpu::Limits limits(int processes = 1) const;
};

// The plan of the first one of so many GPUs.
gpu::Plan plan_of(const std::shared_ptr<const Program>& program, int gpus, const gpu::PlanOptions& options = {});

// Calls check(plan, gpus, deterministic) with the plans for these numbers of GPUs, with a fixed order of additions and
// without.
template <class F>
void for_each_plan(const std::shared_ptr<const Program>& program, const std::vector<int>& counts, F&& check) {
  for (const int gpus : counts) {
    for (const bool deterministic : {false, true}) {
      INFO("GPUs " << gpus << ", deterministic " << deterministic);
      check(plan_of(program, gpus, {.deterministic = deterministic}), gpus, deterministic);
    }
  }
}

// The positions of commands for which `is_meant(command)` holds, and of those of a kind.
template <class F>
std::vector<std::size_t> places(const gpu::Plan& plan, F&& is_meant) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < plan.commands.size(); ++i) {
    if (is_meant(plan.commands[i])) found.push_back(i);
  }
  return found;
}
template <class T>
std::vector<std::size_t> places_of(const gpu::Plan& plan) {
  return places(plan, [](const gpu::Command& command) { return std::holds_alternative<T>(command); });
}

// Of launches of this op.
std::vector<std::size_t> launches_of(const gpu::Plan& plan, std::string_view op);

// A module on these GPUs. Equations are computed by their reference, unless `make_kernel` says else: what is tested is
// what the GPUs do between them.
std::unique_ptr<Module> load_on(gpu::Platform& platform, int gpus, Source source, const gpu::PlanOptions& options = {},
                                const gpu::MakeKernel& make_kernel = by_reference);

// Emulated GPUs, and modules on all of them, which compute equations by their reference.
struct EmulatedGpus {
  explicit EmulatedGpus(const Emulation& options = {}) : platform(make_emulated(options)) {}
  std::unique_ptr<Module> load(const Source& source) const { return load_on(*platform, platform->devices(), source); }
  std::unique_ptr<Module> load(std::shared_ptr<const Program> program, int batches = 1) const {
    return load({{{"test", std::move(program), batches}}});
  }

  const std::unique_ptr<gpu::Platform> platform;
  DeviceCalls& calls = calls_of(*platform);
};

Values run_on_gpus(std::shared_ptr<const Program> program, const Values& inputs, const OnGpus& how);

// Fails unless that gives the expected values.
void check_program(const std::shared_ptr<const Program>& program, const Values& inputs, const Values& expected,
                   const OnGpus& how);

// Fails unless one step and three steps give the interpreter's values in every mode, on the fewest and the most GPUs up
// to four.
void check_program(const std::shared_ptr<const Program>& program);
// The same on every number of GPUs up to eight that the program can have.
void check_program_on_all(const std::shared_ptr<const Program>& program);

}  // namespace pmaptrain::test
