// Runs one worker's part of a step. The tasks of a stage are divided among the workers: each has a range of them. A
// worker first runs the tasks of its own range, then tasks of other ranges that nobody has begun (work stealing).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/runtime/cpu/barrier.h"
#include "core/runtime/cpu/bind.h"

namespace pmaptrain::cpu {

// Records which tasks of a plan have been taken in the current step. The workers that run the step share it.
class Claims {
 public:
  explicit Claims(const std::vector<BoundStage>& stages);

  // Returns whether the caller gets the task, that is, whether no worker has taken it in step number `step`.
  bool take(std::size_t stage, std::size_t task, std::uint32_t step) {
    std::atomic<std::uint32_t>& last = stages_[stage][task];
    std::uint32_t seen = last.load(std::memory_order_relaxed);
    return seen != step && last.compare_exchange_strong(seen, step, std::memory_order_relaxed);
  }

 private:
  // By stage and task: the number of the last step in which the task was taken.
  std::vector<std::unique_ptr<std::atomic<std::uint32_t>[]>> stages_;
};

// Identifies one step of one member, and the memory that it uses.
struct StepId {
  std::uint32_t number = 1;  // differs from the numbers of the plan's previous steps, for Claims
  int parity = 0;            // for this and the next two, see MemorySelection
  int slot = 0;
  std::int64_t member = 0;
};

class Worker {
 public:
  // `workers` is the number of workers that share the tasks of a step: all, or 1 if each worker runs its own members.
  Worker(BoundPlan& bound, const Memory& memory, std::size_t entry, int index, int workers, std::int64_t members);

  // Runs all stages of one step, with a barrier between stages.
  void run_step(const StepId& step, Claims& claims, Barrier& barrier);
  // Like run_step(), and adds the measured seconds of each command to the entry of its instruction. For reports only.
  void profile_step(const StepId& step, Claims& claims, Barrier& barrier,
                    std::map<const Instruction*, double>& seconds);
  // Like run_step(), and appends the begin and end of each command to `spans`. `rows` maps instructions to their
  // indices in Module::instructions(). For `run --trace`.
  void trace_step(const StepId& step, Claims& claims, Barrier& barrier,
                  const std::map<const Instruction*, std::int32_t>& rows, std::vector<WorkSpan>& spans);

 private:
  template <class Wait, class F>
  void for_each_group(const StepId& step, Claims& claims, Wait&& wait, F&& f);

  BoundPlan& bound_;
  const Memory& memory_;
  const std::size_t entry_;
  const int worker_;                   // the number of this worker in the team, which determines its memory
  const std::size_t index_, workers_;  // its number among the workers that share the tasks of a step, and their count
  const std::uint32_t stage_runs_per_step_;  // in a step
  // Whether each worker runs its one task of a stage without claiming it. Only a worker that is late by a whole task
  // could leave it to others, and they would wait for that worker at the barrier anyway; in a short step, the claims
  // take longer than the task that this saves.
  const bool is_short_;
  std::vector<Bases> bases_;         // by member
  std::vector<CommandList*> group_;  // the lists that run abreast
  std::byte* scratch_;
};

}  // namespace pmaptrain::cpu
