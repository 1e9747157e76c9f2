// Durations and intervals in steps.
#pragma once

#include <cstdint>
#include <string>

#include "core/declare/values.h"
#include "core/mesh/batch_plan.h"

namespace pmaptrain::step {

// The durations and intervals of a run in steps. Steps count from 1.
struct Timetable {
  std::int64_t steps = 0;  // the length of the run
  std::int64_t steps_per_epoch = 1;
  std::int64_t log_every = 0;       // 0: never
  std::int64_t eval_every = 0;      // 0: never
  std::int64_t verify_every = 0;    // interval of train.verify_replicas; 0: never
  std::int64_t save_every = 0;      // interval of checkpoints in steps; 0: never
  double save_seconds = 0;          // interval of checkpoints in seconds; 0: never
  bool saves_during_run = false;    // whether a checkpoint may be written before the end
  std::int64_t spike_window = 0;    // the window of train.loss_spike; 0: losses are not watched
  std::int64_t schedule_steps = 0;  // the length of a schedule without a duration of its own; see make_optimizer()
};

// Converts a duration or an interval to steps. Throws Error (usage) at the duration's place in the config if it is
// shorter than one step, has more than max_steps steps, or counts examples and is not a multiple of the global batch
// size.
std::int64_t to_steps(const declare::Duration& duration, const BatchPlan& batch, const std::string& key);

}  // namespace pmaptrain::step
