// What happens during a run, as values. The loop emits events; the progress bar, the plain log, log.txt, metrics.jsonl
// and summary.json are consumers, and none of them can stop the training.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace pmaptrain::train {

// In the order they are shown; the first is the loss. Values may be NaN or infinite.
using Measures = std::vector<std::pair<std::string, double>>;

struct Started {
  std::string name;
  std::string run_dir;          // empty: nothing is written
  std::int64_t first_step = 0;  // completed before this run began (a resumed run)
  std::int64_t steps = 0;       // planned in total
  std::int64_t steps_per_epoch = 0;
  std::vector<std::string> description;  // lines to show before the first step
};

// After every step; carries no device value, so it costs no transfer. For the bar only.
struct Progressed {
  std::int64_t step = 0;   // completed, from 1
  std::int64_t epoch = 1;  // the one this step belongs to, from 1
};

// At the log interval, and at the first and last step: the batch of this step under the parameters before its update.
struct Logged {
  std::int64_t step = 0, epoch = 1;
  Measures measures;
  double learning_rate = 0, grad_norm = 0, examples_per_second = 0, seconds = 0;  // since the start of training
};

// At the end of each epoch (and of the run, when it ends within one): means over the examples of the epoch so far.
struct EpochEnded {
  std::int64_t step = 0, epoch = 1;
  Measures measures;
  std::int64_t examples = 0;  // counted, without padding
  double seconds = 0;
};

struct Evaluated {
  std::int64_t step = 0, epoch = 1;
  std::string split;  // "test"
  Measures measures;
  std::int64_t examples = 0;
  double seconds = 0;
};

struct Warned {
  std::string text;
  bool stops = false;  // a guard that ends the run: shown as an error
};

// True values beside learned ones, for sources that know them.
struct Comparison {
  std::string parameter;
  std::vector<double> initial, learned, truth;  // truth may be empty: then before and after are shown
};

struct Best {
  std::int64_t step = 0;
  std::string metric;
  double value = 0;
};

struct Ended {
  std::string status;  // done | stopped | failed
  std::string reason;  // duration | early_stopping | max_steps | max_time | signal | guard | error
  int exit_status = 0;
  std::int64_t steps = 0, epochs = 0, examples_seen = 0, examples_skipped = 0;
  std::int64_t steps_skipped = 0;  // among the steps, those that changed nothing (train.on_nonfinite: skip)
  std::vector<std::pair<std::string, Measures>> final_measures;  // by split: train, test
  std::string test_parameters;  // what test was evaluated with at the end: "best" or "last"; empty: it was not
  std::vector<Comparison> comparisons;
  std::string run_dir;
  double seconds = 0;
  std::vector<std::string> missing = {};    // what the run folder lacks because it could not be written, as sentences
  bool continues = false;                   // --resume goes on with it
  std::optional<Best> best = std::nullopt;  // of the checkpoints kept for being best, where any are
};

using Event = std::variant<Started, Progressed, Logged, EpochEnded, Evaluated, Warned, Ended>;

class Consumer {
 public:
  virtual ~Consumer() = default;
  virtual void on(const Event& event) = 0;
};

}  // namespace pmaptrain::train
