// One worker: the plan's steps bound to addresses and kernels for the blocks that it has, ready to run.
#pragma once

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/ops/all.h"
#include "core/ops/collective/collective.h"
#include "core/runtime/cpu/barrier.h"
#include "core/runtime/cpu/executor.h"
#include "core/runtime/cpu/memory.h"
#include "core/runtime/plan.h"

namespace pmaptrain {

// A step with everything that it needs. All vectors are filled when bound and only read when run.
struct Command {
  Step::Kind kind = Step::Kind::kernel;
  const Step* step = nullptr;

  // kernel
  CpuKernel* kernel = nullptr;
  std::vector<const std::byte*> operands;
  std::vector<std::byte*> results;
  std::vector<std::byte*> odd_results;  // where accumulators alternate: results of steps with parity 1

  // copy, a loop's slices, and what a part gathers before its kernel runs: `count` runs of `bytes`, `from_stride` and
  // `to_stride` apart
  struct Copy {
    const std::byte* from;
    std::byte* to;
    std::size_t bytes, count, from_stride, to_stride;
    std::size_t per_iteration;  // added to `from` in each iteration of a loop

    void run(std::size_t iteration) const {
      for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(to + i * to_stride, from + i * from_stride + iteration * per_iteration, bytes);
      }
    }
  };
  std::vector<Copy> copies;

  // accumulate, combine, exchange: one call for each operand array of each result; two sets where accumulators
  // alternate
  struct Exchange {
    std::vector<std::span<const ConstArray>> operands;  // of `arrays`
    std::int64_t member = 0;
    std::vector<Array> results;
  };
  std::vector<Exchange> exchanges[2];
  std::vector<std::vector<ConstArray>> arrays;  // what devices of one group read is there once
  void (*exchange)(const void* op, const CollectiveCall& call) = nullptr;

  // loop
  std::int64_t iterations = 0;
  std::vector<Command> before, body;
};

using MakeKernel = std::function<std::unique_ptr<CpuKernel>(const Op& op, const CpuRequest& request)>;

class Worker {
 public:
  // Binds the plan for worker `index` of `count`; makes its kernels. To be called on the thread that will run it.
  Worker(const Plan& plan, const Memory& memory, MakeKernel make_kernel, int index, int count);

  // All stages of one step; `parity` alternates between steps.
  void run_step(int parity, Barrier& barrier);

  // The same as run_step, but reads the clock around each command: adds to each step of the plan the seconds that its
  // commands took. For reports only.
  void profile_step(int parity, Barrier& barrier, std::map<const Step*, double>& seconds);

  void collect_kernels(std::map<const Step*, KernelInfo>& into) const;

 private:
  struct BoundStage {
    std::vector<Command> invariant;
    std::vector<std::vector<Command>> runs;  // each of several blocks, which are carried at once
  };
  struct Place {  // what a step is bound for: neighbouring blocks, or all devices at once (none)
    int first_block = 0, blocks = 0;
  };

  std::vector<Command> bind(const std::vector<Step>& steps, Place place);
  Command bind(const Step& step, Place place);
  void bind_kernel(const Step& step, Place place, Command& command);
  void bind_row_sums(const Step& step, Place place, std::vector<Command>& commands);
  void bind_parts(const Step& step, std::vector<Command>& commands);
  void bind_copy(const Step& step, Place place, Command& command);
  void bind_loop(const Step& step, Place place, Command& command);
  void bind_accumulate(const Step& step, Place place, Command& command);
  void bind_combine(const Step& step, Place place, Command& command);
  void bind_exchange(const Step& step, Place place, Command& command);

  const Buffer& buffer(int index) const { return plan_.buffers[static_cast<std::size_t>(index)]; }
  Block devices_of(Place place) const;
  std::byte* address(int index, Place place, std::int64_t device_in_block = 0) const;
  const Type* flat(DType dtype, std::int64_t elements);
  std::pair<std::int64_t, std::int64_t> range(std::int64_t elements) const;
  CpuKernel* kernel(const Op& op, const CpuRequest& request);

  static void run(const std::vector<Command>& commands, std::byte* scratch, int parity);
  static void run(const Command& command, std::byte* scratch, int parity);
  static void profile(const std::vector<Command>& commands, std::byte* scratch, int parity,
                      std::map<const Step*, double>& seconds);

  const Plan& plan_;
  const Memory& memory_;
  const MakeKernel make_kernel_;
  const int index_, count_;
  std::vector<BoundStage> stages_;
  std::map<std::string, std::unique_ptr<CpuKernel>> kernels_;
  std::deque<Type> types_;
  std::unique_ptr<std::byte, decltype(&std::free)> scratch_{nullptr, &std::free};
};

}  // namespace pmaptrain
