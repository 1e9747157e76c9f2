#include "core/runtime/cpu/worker.h"

#include <algorithm>
#include <span>
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

// Calls f(command, list) for the commands of lists that run abreast: the first one of each, then the second ones.
template <class F>
void for_each_command(std::span<CommandList* const> lists, F&& f) {
  if (lists.size() == 1) {  // a step of a microsecond would notice the loop over lists
    for (Command& command : lists.front()->commands) f(command, *lists.front());
    return;
  }
  for (std::size_t i = 0; i < lists.front()->commands.size(); ++i) {
    for (CommandList* const list : lists) f(list->commands[i], *list);
  }
}

// Runs the commands and calls ran(instruction, begin, end) after each. In a loop, it also calls this after each command
// of the body, and after the copies of an iteration.
template <class Ran>
void run_timed(std::span<Command> commands, CommandList& list, std::byte* scratch, const Ran& ran) {
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
  group_.reserve(bound.plan().abreast);
}

// Calls f(lists) for the command lists that this worker runs, with resolved addresses: for those that run abreast at
// once. Calls wait() between two stages if other workers share the step.
template <class Wait, class F>
void Worker::for_each_group(const StepId& step, Claims& claims, Wait&& wait, F&& f) {
  Bases& bases = bases_[static_cast<std::size_t>(step.member)];
  bases[static_cast<std::size_t>(Base::accumulators)] = memory_.accumulators(worker_, step.parity);
  bases[static_cast<std::size_t>(Base::batch)] = memory_.batch(entry_, step.slot, step.member);
  // A stage that a loop repeats has a number of its own each time, by which its tasks are claimed.
  std::uint32_t run = step.number * stage_runs_per_step_;
  bool is_first = true;
  for_each_stage(bound_.plan().loops, 0, bound_.stages().size(), 0, [&](std::size_t number, std::int64_t iteration) {
    // Resolves the addresses of a list that runs as number `place` of those abreast.
    const auto locate = [&](CommandList& list, std::size_t place) {
      Bases of_place = bases;
      of_place[static_cast<std::size_t>(Base::arena)] += place * bound_.plan().arena_bytes;
      resolve_addresses(list, {step.parity, step.slot, step.member, place}, of_place);
      list.iteration = iteration;
      group_.push_back(&list);
    };
    const auto run_alone = [&](CommandList& list) {
      resolve_addresses(list, {step.parity, step.slot, step.member, 0}, bases);
      list.iteration = iteration;
      CommandList* const alone = &list;
      f(std::span(&alone, 1));
    };
    if (!std::exchange(is_first, false) && workers_ > 1) wait();
    BoundStage& stage = bound_.stages()[number];
    if (!stage.every_worker.commands.empty()) run_alone(stage.every_worker);
    const std::size_t count = stage.tasks.size();
    ++run;
    if (is_short_ && workers_ > 1 && count <= workers_) {
      if (index_ < count) run_alone(*stage.tasks[index_].list);
      return;
    }
    if (workers_ == 1 && bound_.plan().abreast == 1) {
      for (const Task& task : stage.tasks) run_alone(*task.list);
      return;
    }
    const auto take = [&](std::size_t i) { return workers_ == 1 || claims.take(number, i, run); };
    const auto begin = [&](std::size_t worker) { return worker * count / workers_; };
    const std::size_t end = begin(index_ + 1);
    for (std::size_t i = begin(index_); i < end;) {
      CommandList& first = *stage.tasks[i].list;
      if (!take(i++)) continue;
      // It takes about half of what is left of its range, so that other workers can take the rest.
      const std::size_t most = std::min(bound_.plan().abreast, workers_ == 1 ? end - i + 1 : (end - i + 2) / 2);
      group_.clear();
      locate(first, 0);
      while (group_.size() < most && i < end && stage.tasks[i].like_previous && take(i)) {
        locate(*stage.tasks[i++].list, group_.size());
      }
      f(std::span<CommandList* const>(group_));
    }
    // Take tasks from the other workers' ranges, starting at the end, which their owners reach last.
    for (std::size_t next = 1; next < workers_; ++next) {
      const std::size_t other = (index_ + next) % workers_;
      for (std::size_t i = begin(other + 1); i > begin(other); --i) {
        if (claims.take(number, i - 1, run)) run_alone(*stage.tasks[i - 1].list);
      }
    }
  });
}

void Worker::run_step(const StepId& step, Claims& claims, Barrier& barrier) {
  for_each_group(
      step, claims, [&] { barrier.arrive_and_wait(); },
      [&](std::span<CommandList* const> lists) {
        for_each_command(lists, [&](Command& command, CommandList& list) { run(command, list, scratch_); });
      });
}

void Worker::profile_step(const StepId& step, Claims& claims, Barrier& barrier,
                          std::map<const Instruction*, double>& seconds) {
  const double clock = clock_seconds();
  const auto add = [&](const Instruction* instruction, Clock::time_point begin, Clock::time_point end) {
    seconds[instruction] += std::max(0.0, seconds_between(begin, end) - clock);
  };
  for_each_group(
      step, claims, [&] { barrier.arrive_and_wait(); },
      [&](std::span<CommandList* const> lists) {
        for_each_command(lists, [&](Command& command, CommandList& list) {
          run_timed({&command, 1}, list, scratch_, add);
        });
      });
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
  // One piece after the other, so that a task is the work on one piece.
  for_each_group(step, claims, wait, [&](std::span<CommandList* const> lists) {
    for (CommandList* const list : lists) {
      const std::size_t task = spans.size();
      spans.push_back({WorkKind::task, -1, step.member, list->instances, Clock::now(), {}});
      run_timed(list->commands, *list, scratch_, add);
      spans[task].end = Clock::now();
    }
  });
}

}  // namespace pmaptrain::cpu
