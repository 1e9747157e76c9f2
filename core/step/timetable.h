// Durations and intervals of a config, in steps.
#pragma once

#include <cstdint>
#include <string>

#include "core/data/batches/batch.h"
#include "core/spec/spec.h"

namespace pmaptrain::train {

// Durations and intervals in steps, counted from 1.
struct Timetable {
  std::int64_t steps = 0;  // of the whole run
  std::int64_t steps_per_epoch = 1;
  std::int64_t log_every = 0;  // 0: never
  std::int64_t eval_every = 0;
  std::int64_t verify_every = 0;
  std::int64_t save_every = 0;    // checkpoints, by steps
  double save_seconds = 0;        // or by time; 0: never
  bool saves_during_run = false;  // whether a checkpoint may be written before the end
  std::int64_t spike_window = 0;
  std::int64_t schedule_steps = 0;  // the length that the run began with, or what was left of it at a new schedule
};

// A duration or interval in steps. Throws Error (usage) at its place when it comes to no step, or examples are not
// whole batches.
std::int64_t to_steps(const spec::Duration& duration, const data::BatchPlan& batch, const std::string& key);

}  // namespace pmaptrain::train
