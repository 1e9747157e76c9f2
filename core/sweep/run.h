// A sweep from its first trial to its summary.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/spec/sweep.h"
#include "core/sweep/folder.h"
#include "core/sweep/halving.h"
#include "core/sweep/plan.h"
#include "core/sweep/runners.h"
#include "core/sweep/store.h"

namespace pmaptrain::sweep {

// A run that goes on, as far as it has logged.
struct RunningTrial {
  const Row* row = nullptr;
  std::int64_t step = 0, steps = 0;   // of the run; up to where its rung ends
  std::int64_t epoch = 0;             // 0: not known
  std::optional<double> loss, value;  // of training; of the last evaluation. None: not yet, or not finite
};

// How far a sweep is, told when a run begins or ends, and each second.
struct Progress {
  std::int64_t waiting = 0, running = 0, done = 0, failed = 0;  // runs
  std::optional<Score> best;
  std::int64_t steps = 0, all_steps = 0;  // of training, in this process and in what is left
  std::optional<double> seconds_left;     // none: not known yet
  std::vector<RunningTrial> trials;       // those that run, by number
  const Row* ended = nullptr;             // the run that has just ended
  std::int64_t together = 1;              // how many runs the ensemble has in which it was trained
  std::string note;                       // a sentence to show; may be empty
};

struct SweepOptions {
  std::filesystem::path folder;
  FolderOptions how;
  const std::atomic<int>* stop = nullptr;  // non-zero: stop all runs with checkpoints
  std::function<void(const Progress&)> told = {};
  double most_seconds_taken = 10;  // how long --resume waits for a sweep that runs in the folder
};

// What run_sweep would begin or go on with: the plan, and the rows of all runs, those of an earlier process as it left
// them. Writes nothing. Throws Error where run_sweep would before its first run, but for what only writing can find; a
// sweep that runs in the folder is not waited for.
struct Beginning {
  SweepPlan plan;
  std::vector<DataFile> data;
  std::vector<Row> rows;
  bool continues = false;  // with trials of an earlier process
};
Beginning check_sweep(const spec::Sweep& sweep, const SweepOptions& options, int cores);

// Runs all trials that have no result yet. Returns the rows as the store has them. Throws Error for what prevents a
// sweep or keeps it from being recorded; runs are then stopped, and --resume goes on.
std::vector<Row> run_sweep(const spec::Sweep& sweep, const SweepOptions& options, Runners& runners);

}  // namespace pmaptrain::sweep
