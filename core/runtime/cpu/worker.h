// Runs one worker's part of a step. A worker first takes the tasks of its own range, then tasks that other workers have
// not begun (work stealing).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/runtime/cpu/barrier.h"
#include "core/runtime/cpu/bind.h"

namespace pmaptrain::cpu {

// Records which tasks of a plan have been taken in the current step. The workers of the plan share it.
class Claims {
 public:
  explicit Claims(const std::vector<BoundStage>& stages);

  // Takes a task. Returns whether the caller is the first in this step.
  bool take(std::size_t stage, std::size_t task, std::uint32_t step) {
    std::atomic<std::uint32_t>& last = stages_[stage][task];
    std::uint32_t seen = last.load(std::memory_order_relaxed);
    return seen != step && last.compare_exchange_strong(seen, step, std::memory_order_relaxed);
  }

 private:
  std::vector<std::unique_ptr<std::atomic<std::uint32_t>[]>> stages_;
};

// Identifies one run of a plan and the memory that it uses.
struct StepOrigin {
  std::uint32_t number = 1;  // differs from the number of the previous run
  int parity = 0;
  int slot = 0;
  std::int64_t member = 0;
};

class Worker {
 public:
  // `workers` is the number of workers that share the plan's tasks.
  Worker(BoundPlan& bound, const Memory& memory, std::size_t entry, int index, int workers, std::int64_t members);

  // Runs all stages of one step, with a barrier between stages.
  void run_step(const StepOrigin& step, Claims& claims, Barrier& barrier);
  // Like run_step(), and adds the measured seconds of each command to its instruction. For reports only.
  void profile_step(const StepOrigin& step, Claims& claims, Barrier& barrier,
                    std::map<const Instruction*, double>& seconds);
  // Like run_step(), and appends the begin and end of each command to `spans`. `rows` maps instructions to row numbers.
  // For reports only.
  void trace_step(const StepOrigin& step, Claims& claims, Barrier& barrier,
                  const std::map<const Instruction*, std::int32_t>& rows, std::vector<WorkSpan>& spans);

 private:
  template <class Wait, class F>
  void for_each_list(const StepOrigin& step, Claims& claims, Wait&& wait, F&& f);

  BoundPlan& bound_;
  const Memory& memory_;
  const std::size_t entry_;
  const int worker_;
  const std::size_t index_, workers_;   // number among the workers that share the plan's tasks, and their count
  const std::uint32_t runs_of_stages_;  // in a step
  std::vector<Bases> bases_;            // by member
  std::byte* scratch_;
};

}  // namespace pmaptrain::cpu
