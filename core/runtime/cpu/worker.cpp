#include "core/runtime/cpu/worker.h"

#include <algorithm>
#include <utility>

#include "core/base/clock.h"

namespace pmaptrain::cpu {
namespace {

// The time that reading the clock takes: the smallest difference of two successive readings.
double clock_seconds() {
  static const double seconds = [] {
    double least = 1;
    for (int i = 0; i < 1000; ++i) {
      const Clock::time_point begin = Clock::now();
      least = std::min(least, seconds_between(begin, Clock::now()));
    }
    return least;
  }();
  return seconds;
}

// Runs the commands and calls ran(instruction, begin, end) after each. In a loop, it also calls this after each command
// of the body, and after the copies of an iteration.
template <class Ran>
void run_timed(std::vector<Command>& commands, CommandList& list, std::byte* scratch, const Ran& ran) {
  const auto timed = [&](const Command& command, const auto& f) {
    const Clock::time_point begin = Clock::now();
    f();
    ran(command.instruction, begin, Clock::now());
  };
  for (Command& command : commands) {
    RunLoop* const loop = std::get_if<RunLoop>(&command.action);
    if (loop == nullptr) {
      timed(command, [&] { run(command, list, scratch); });
      continue;
    }
    timed(command, [&] {
      for (const StridedCopy& copy : loop->carry_copies) run_copy(copy, list);
    });
    for (std::int64_t k = 0; k < loop->iterations; ++k) {
      timed(command, [&] {
        for (const StridedCopy& slice : loop->slice_copies) run_copy(slice, list, k);
      });
      run_timed(loop->body, list, scratch, ran);
    }
  }
}

}  // namespace

Claims::Claims(const std::vector<BoundStage>& stages) {
  for (const BoundStage& stage : stages) {
    stages_.push_back(std::make_unique<std::atomic<std::uint32_t>[]>(stage.tasks.size()));
  }
}

Worker::Worker(BoundPlan& bound, const Memory& memory, std::size_t entry, int index, int workers, std::int64_t members)
    : bound_(bound),
      memory_(memory),
      entry_(entry),
      worker_(index),
      index_(workers == 1 ? 0 : static_cast<std::size_t>(index)),
      workers_(static_cast<std::size_t>(workers)),
      stage_runs_per_step_(static_cast<std::uint32_t>(bound.plan().stage_runs_per_step())),
      is_short_(bound.plan().is_short()),
      scratch_(memory.scratch(index)) {
  for (std::int64_t member = 0; member < members; ++member) bases_.push_back(memory.bases(index, member, entry));
}

// Calls f(list) for each command list that this worker runs, with resolved addresses, and wait() between two stages if
// other workers share the step.
template <class Wait, class F>
void Worker::for_each_list(const StepId& step, Claims& claims, Wait&& wait, F&& f) {
  Bases& bases = bases_[static_cast<std::size_t>(step.member)];
  bases[static_cast<std::size_t>(Base::accumulators)] = memory_.accumulators(worker_, step.parity);
  bases[static_cast<std::size_t>(Base::batch)] = memory_.batch(entry_, step.slot, step.member);
  // A stage that a loop repeats has a number of its own each time, by which its tasks are claimed.
  std::uint32_t run = step.number * stage_runs_per_step_;
  bool is_first = true;
  for_each_stage(bound_.plan().loops, 0, bound_.stages().size(), 0, [&](std::size_t number, std::int64_t iteration) {
    const auto at = [&](CommandList& list) {
      resolve_addresses(list, {step.parity, step.slot, step.member}, bases);
      list.iteration = iteration;
      f(list);
    };
    if (!std::exchange(is_first, false) && workers_ > 1) wait();
    BoundStage& stage = bound_.stages()[number];
    if (!stage.every_worker.commands.empty()) at(stage.every_worker);
    const std::size_t count = stage.tasks.size();
    if (workers_ == 1) {
      for (const Task& task : stage.tasks) at(*task.list);
      return;
    }
    ++run;
    if (is_short_ && count <= workers_) {
      if (index_ < count) at(*stage.tasks[index_].list);
      return;
    }
    const auto begin = [&](std::size_t worker) { return worker * count / workers_; };
    for (std::size_t i = begin(index_); i < begin(index_ + 1); ++i) {
      if (claims.take(number, i, run)) at(*stage.tasks[i].list);
    }
    // Take tasks from the other workers' ranges, starting at the end, which their owners reach last.
    for (std::size_t next = 1; next < workers_; ++next) {
      const std::size_t other = (index_ + next) % workers_;
      for (std::size_t i = begin(other + 1); i > begin(other); --i) {
        if (claims.take(number, i - 1, run)) at(*stage.tasks[i - 1].list);
      }
    }
  });
}

void Worker::run_step(const StepId& step, Claims& claims, Barrier& barrier) {
  for_each_list(
      step, claims, [&] { barrier.arrive_and_wait(); },
      [&](CommandList& list) {
        for (Command& command : list.commands) run(command, list, scratch_);
      });
}

void Worker::profile_step(const StepId& step, Claims& claims, Barrier& barrier,
                          std::map<const Instruction*, double>& seconds) {
  const double clock = clock_seconds();
  const auto add = [&](const Instruction* instruction, Clock::time_point begin, Clock::time_point end) {
    seconds[instruction] += std::max(0.0, seconds_between(begin, end) - clock);
  };
  for_each_list(
      step, claims, [&] { barrier.arrive_and_wait(); },
      [&](CommandList& list) { run_timed(list.commands, list, scratch_, add); });
}

void Worker::trace_step(const StepId& step, Claims& claims, Barrier& barrier,
                        const std::map<const Instruction*, std::int32_t>& rows, std::vector<WorkSpan>& spans) {
  const auto add = [&](const Instruction* instruction, Clock::time_point begin, Clock::time_point end) {
    spans.push_back({WorkKind::instruction, rows.at(instruction), step.member, {}, begin, end});
  };
  const auto wait = [&] {
    const Clock::time_point begin = Clock::now();
    barrier.arrive_and_wait();
    spans.push_back({WorkKind::wait, -1, step.member, {}, begin, Clock::now()});
  };
  for_each_list(step, claims, wait, [&](CommandList& list) {
    const std::size_t task = spans.size();
    spans.push_back({WorkKind::task, -1, step.member, list.instances, Clock::now(), {}});
    run_timed(list.commands, list, scratch_, add);
    spans[task].end = Clock::now();
  });
}

}  // namespace pmaptrain::cpu
