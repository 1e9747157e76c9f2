// One worker's share of a step: the tasks of its own range first, then what others have not begun.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/runtime/cpu/barrier.h"
#include "core/runtime/cpu/bind.h"

namespace pmaptrain::cpu {

// Which tasks of a plan have been taken in the present step. Shared by its workers.
class Claims {
 public:
  explicit Claims(const std::vector<BoundStage>& stages);

  // Whether the caller is the first to ask for this task in this step.
  bool take(std::size_t stage, std::size_t task, std::uint32_t step) {
    std::atomic<std::uint32_t>& last = stages_[stage][task];
    std::uint32_t seen = last.load(std::memory_order_relaxed);
    return seen != step && last.compare_exchange_strong(seen, step, std::memory_order_relaxed);
  }

 private:
  std::vector<std::unique_ptr<std::atomic<std::uint32_t>[]>> stages_;
};

// What one run of a plan works on.
struct StepOrigin {
  std::uint32_t number = 1;  // never that of the run before
  int parity = 0;
  int slot = 0;
  std::int64_t member = 0;
};

class Worker {
 public:
  // `workers`: how many share the plan's tasks.
  Worker(Bound& bound, const Memory& memory, std::size_t entry, int index, int workers, std::int64_t members);

  // All stages of one step. `barrier` is passed between stages.
  void run_step(const StepOrigin& step, Claims& claims, Barrier& barrier);
  // Like run_step(), but reads the clock around each command and adds its seconds to those of its instruction. For
  // reports only.
  void profile_step(const StepOrigin& step, Claims& claims, Barrier& barrier,
                    std::map<const Instruction*, double>& seconds);
  // Like run_step(), but reads the clock around each command and appends its begin and end to `spans`. `rows` numbers
  // the instructions. For reports only.
  void trace_step(const StepOrigin& step, Claims& claims, Barrier& barrier,
                  const std::map<const Instruction*, std::int32_t>& rows, std::vector<WorkSpan>& spans);

 private:
  template <class Wait, class F>
  void for_each_list(const StepOrigin& step, Claims& claims, Wait&& wait, F&& f);

  Bound& bound_;
  const Memory& memory_;
  const std::size_t entry_;
  const int worker_;
  const std::size_t index_, workers_;  // among those that share the plan's tasks
  std::vector<Bases> bases_;           // by member
  std::byte* scratch_;
};

}  // namespace pmaptrain::cpu
