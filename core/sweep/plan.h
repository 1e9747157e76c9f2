// The trials of a sweep, all checked before one starts, and what they need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/spec/spec.h"
#include "core/spec/sweep.h"
#include "core/sweep/runner.h"
#include "core/sweep/space.h"
#include "core/sweep/store.h"

namespace pmaptrain::sweep {

// A trial's values and what it is called.
struct PlannedTrial {
  std::int64_t number = 0;
  spec::TrialValues values;
  std::string json;
};

// A trial's parameters as JSON, the same for any order of the parameters in the file.
std::string in_any_order(const std::string& parameters);

// The numbers of trials that a store has already, by their parameters in_any_order(). Those of earlier versions may
// have drawn the same twice.
using Numbers = std::multimap<std::string, std::int64_t>;

// The trials of a sweep in its order. Those that are not in `known` have the numbers after its last one.
std::vector<PlannedTrial> trials_of(const spec::Sweep& sweep, const Numbers& known = {}, Draws draws = Draws::distinct);

// "0007", or "0007-r1" for a replicate after the first.
std::string trial_name(std::int64_t number, std::int64_t replicate);
// "trial 7 (optimizer.learning_rate=0.01)"
std::string trial_text(const spec::Sweep& sweep, const PlannedTrial& trial);

// What trials have in common that differ in numbers alone: their memory is planned once.
struct TrialProgram {
  std::int64_t steps = 0;  // of a whole run
  std::int64_t examples_per_step = 0;
  std::vector<std::int64_t> rungs;  // in steps; the last one is `steps`
  std::size_t memory = 0;           // of one run, in bytes
  std::optional<std::size_t> available;
  bool on_gpus = false;
  bool sets_workers = false;  // whether the config names a number of workers
  // By the cost model, how many times faster a run is on all cores than on one; of the first program only.
  double speed_up = 1;
};

struct SweepPlan {
  std::vector<PlannedTrial> trials;
  std::vector<Row> rows;                // by trial and replicate; all are waiting
  std::vector<std::size_t> program_of;  // of each row
  std::vector<TrialProgram> programs;
  std::vector<std::string> data_paths;  // files and folders that data.source names
  std::vector<std::string> warnings;    // of configs, each once
  std::vector<std::string> notes;       // what values of the file replace in the base, each once
  spec::Timeout timeout;                // of the first trial: mesh.timeout
};

// Makes and checks the configs of all trials, and plans the memory of each program. Throws Error with the mistakes of
// all trials, each once and with the first trial that has it.
SweepPlan plan_sweep(const spec::Sweep& sweep, int cores, const Numbers& known = {}, Draws draws = Draws::distinct);

// The program of each row. `rows` are those of the plan, in any order.
std::vector<std::size_t> programs_of(const SweepPlan& plan, const std::vector<Row>& rows);

// How many runs at once a process has, and the workers of each.
struct Concurrency {
  int runs = 1, workers = 1;
};
// Of each runner. By default as many as there are cores and memory for; one at a time on GPUs, or where a run uses all
// cores well. max_concurrent counts the runs of all of them. The first one has at least one.
std::vector<Concurrency> concurrency_of(const spec::Sweep& sweep, const SweepPlan& plan,
                                        std::span<const Runner> runners);
// The same, where each run has all cores of its process.
std::vector<Concurrency> one_each(const spec::Sweep& sweep, const SweepPlan& plan, std::span<const Runner> runners);

}  // namespace pmaptrain::sweep
