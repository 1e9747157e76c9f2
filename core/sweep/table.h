// The results of a sweep as a table, as text, CSV and JSON; read from its store alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/spec/durations.h"
#include "core/sweep/halving.h"
#include "core/sweep/store.h"

namespace pmaptrain::sweep {

struct TrialResult {
  Score score;                      // over the replicates
  std::int64_t rung = 0;            // of halving: the last one that it reached
  std::vector<std::string> values;  // of the parameters, in the order of Results::parameters
  std::vector<Row> runs;            // by replicate; `run_folder` is empty where there is none (yet)
  Status status = Status::waiting;  // of the run that is least far
  std::optional<double> so_far;     // where it has not ended, and has no value: the best evaluation in its run folder
  std::int64_t together = 1;        // how many runs its ensemble has, whose time is its own
};

struct Results {
  std::string metric, value, search;
  spec::Mode mode = spec::Mode::min;
  std::vector<std::string> parameters;
  std::vector<std::string> logarithmic;  // those that are drawn uniformly in the logarithm
  std::vector<TrialResult> trials;       // the best first: by rung, value, number
  std::vector<RungRow> rungs;
  bool is_left = false;   // trials are not done, and no process runs the sweep: --resume goes on
  bool is_ended = false;  // all trials are done or failed
};

// A trial that the store has as running is stopped here where no process runs the sweep: it was killed. Throws Error:
// usage, if there is no sweep; data, if its store is damaged.
Results read_results(const std::filesystem::path& sweep);

// The best `top` trials; 0: all. `color` adds ANSI sequences. `columns`: of a terminal; 0: none.
std::string results_text(const Results& results, std::int64_t top, bool color = false, int columns = 0);
// "done, rung 2", "done: a guard stopped it after 9 steps". Of the reason at most so many columns; 0: none.
std::string status_text(const Results& results, const TrialResult& trial, int most_reason = 60);
// The steps of the run that is furthest.
std::int64_t steps_of(const TrialResult& trial);
// "3 of 12 trials done", of halving with the rung that goes on: "rung 2 of 3: 1 of 4 trials done".
std::string progress_text(const Results& results);
// One line for each run, with a line of names.
std::string results_csv(const Results& results);
// {"metric", "mode", "value", "search", "status", "trials": [...], "rungs": [...]}, with its end of line.
std::string results_json(const Results& results, std::int64_t top);

// "pmaptrain sweep run sweeps/lr --resume", which goes on with a sweep.
std::string resume_command(const std::filesystem::path& sweep);

// Whether a trial has a value, and the error that none has one, with the reason of most trials.
bool has_best(const Results& results);
Diagnostic no_value(const Results& results);

// The best trial, with its values of the test split, which no search sees; best_json: as a document, with the config of
// its first replicate if asked for. They throw Error (failed) if no trial has a value.
std::string best_text(const Results& results, const std::filesystem::path& sweep);
std::string best_json(const Results& results, const std::filesystem::path& sweep, bool with_config = false);
const TrialResult& best_of(const Results& results);

}  // namespace pmaptrain::sweep
