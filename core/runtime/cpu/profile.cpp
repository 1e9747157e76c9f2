// What a worker consists of and how long its commands take. Beside the path that runs steps: that one reads no clock.
#include <algorithm>

#include "core/base/clock.h"
#include "core/runtime/cpu/worker.h"

namespace pmaptrain {
namespace {

// What two readings of the clock are apart with nothing between them.
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

void collect(const std::vector<Command>& commands, std::map<const Step*, KernelInfo>& into) {
  for (const Command& command : commands) {
    if (command.kernel != nullptr) {
      KernelInfo& info = into[command.step];
      info.implementation = command.kernel->implementation();
      for (const LayoutChange& change : command.kernel->layout_changes()) {
        const auto same = std::find_if(info.layout_changes.begin(), info.layout_changes.end(),
                                       [&](const LayoutChange& known) { return known.of == change.of; });
        if (same == info.layout_changes.end()) {
          info.layout_changes.push_back(change);
        } else {
          same->bytes += change.bytes;
        }
      }
    }
    collect(command.before, into);
    collect(command.body, into);
  }
}

}  // namespace

void Worker::profile_step(int parity, Barrier& barrier, std::map<const Step*, double>& seconds) {
  for (std::size_t number = 0; number < stages_.size(); ++number) {
    if (number > 0) barrier.arrive_and_wait();
    const BoundStage& stage = stages_[number];
    profile(stage.invariant, scratch_.get(), parity, seconds);
    for (const std::vector<Command>& commands : stage.runs) profile(commands, scratch_.get(), parity, seconds);
  }
}

void Worker::profile(const std::vector<Command>& commands, std::byte* scratch, int parity,
                     std::map<const Step*, double>& seconds) {
  const double clock = clock_seconds();
  const auto timed = [&](const Command& command, const auto& f) {
    const Clock::time_point begin = Clock::now();
    f();
    const Clock::time_point end = Clock::now();
    seconds[command.step] += std::max(0.0, seconds_between(begin, end) - clock);
  };
  for (const Command& command : commands) {
    if (command.kind != Step::Kind::loop) {
      timed(command, [&] { run(command, scratch, parity); });
      continue;
    }
    profile(command.before, scratch, parity, seconds);
    for (std::int64_t k = 0; k < command.iterations; ++k) {
      timed(command, [&] {
        for (const Command::Copy& slice : command.copies) slice.run(static_cast<std::size_t>(k));
      });
      profile(command.body, scratch, parity, seconds);
    }
  }
}

void Worker::collect_kernels(std::map<const Step*, KernelInfo>& into) const {
  for (const BoundStage& stage : stages_) {
    collect(stage.invariant, into);
    for (const std::vector<Command>& commands : stage.runs) collect(commands, into);
  }
}

}  // namespace pmaptrain
