// What happens during a run, as values. The loop emits events; the progress bar, the plain log, log.txt, metrics.jsonl
// and summary.json are consumers, and none of them can stop the training.
//
// What is measured is measured of each member of an ensemble, so such an event is a list: of the members that took the
// step, in ascending order. A run without an ensemble is one member, which has no number.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace pmaptrain::train {

// In the order they are shown; the first is the loss. Values may be NaN or infinite.
using Measures = std::vector<std::pair<std::string, double>>;

// Whether a measure is not a number where the examples do not define it: roc_auc, of examples of one class.
inline bool may_be_undefined(const std::string& measure) { return measure.starts_with("roc_auc"); }

// Which member of an ensemble, from 0; none without an ensemble.
using MemberNumber = std::optional<std::int64_t>;

struct Started {
  std::string name;
  std::string run_dir;          // empty: nothing is written
  std::int64_t first_step = 0;  // completed before this run began (a resumed run)
  std::int64_t steps = 0;       // planned in total
  std::int64_t steps_per_epoch = 0;
  std::vector<std::string> description;  // lines to show before the first step
  std::int64_t members = 1;              // of the ensemble
  std::string best_metric = "loss";      // of evaluations: what says which is the best
  bool largest_is_best = false;
};

// What takes a while and is no training step, for the bar only: "evaluating validation".
struct Working {
  std::string what;
  std::int64_t done = 0, total = 0;  // total 0: it is not known how much there is
};

// What a resumed run changes from the step after this one on (--change), with values as YAML.
struct Changed {
  std::int64_t step = 0, epoch = 1;
  std::string key, before, value;
};

// After every step. For the bar only.
struct Progressed {
  std::int64_t step = 0;   // completed, from 1
  std::int64_t epoch = 1;  // the one this step belongs to, from 1
  // Of one of the last steps, the medians of several members; now and then, for consumers that want them.
  Measures measures = {};
};

// At the log interval, and at the first and last step: the batch of this step under the parameters before its update.
struct Logged {
  std::int64_t step = 0, epoch = 1;
  Measures measures;
  double learning_rate = 0, grad_norm = 0, examples_per_second = 0, seconds = 0;  // since the start of training
  MemberNumber member = std::nullopt;
};

// At the end of each epoch (and of the run, when it ends within one): means over the examples of the epoch so far.
struct EpochEnded {
  std::int64_t step = 0, epoch = 1;
  Measures measures;
  std::int64_t examples = 0;  // counted, without padding
  double seconds = 0;
  MemberNumber member = std::nullopt;
};

struct Evaluated {
  std::int64_t step = 0, epoch = 1;
  std::string split;  // "test"
  Measures measures;
  std::int64_t examples = 0;
  double seconds = 0;
  MemberNumber member = std::nullopt;
};

// By split, of metric confusion_matrix: [true class][predicted class].
using Confusions = std::map<std::string, std::vector<std::vector<double>>>;

// What the config asks for and now happens, such as a learning rate that falls on a plateau.
struct Noted {
  std::string text;
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

// Of a member at the end.
struct MemberEnded {
  // By split: of train the means over the epoch so far or just ended, of validation and test the last evaluations.
  std::vector<std::pair<std::string, Measures>> final_measures;
  std::optional<Best> best;        // of the checkpoints kept for being best, where any are
  std::int64_t steps = 0;          // fewer than the run's where it ended before the others
  std::int64_t steps_skipped = 0;  // among them, those that changed nothing (train.on_nonfinite: skip)
  std::string reason;              // why it ended by itself: early_stopping, or nonfinite and other guards; else empty
  std::vector<Comparison> comparisons;
  Confusions confusions = {};  // of the last evaluations
  // The keys that members differ in, and what it has: "optimizer.learning_rate", "0.001".
  std::vector<std::pair<std::string, std::string>> varied = {};
};

struct Ended {
  std::string status;  // done | stopped | failed
  std::string reason;  // duration | early_stopping | max_steps | max_time | signal | guard | error
  int exit_status = 0;
  std::int64_t steps = 0, epochs = 0, examples_seen = 0, examples_skipped = 0;
  std::string test_parameters;  // what test was evaluated with at the end: "best" or "last"; empty: it was not
  std::string run_dir;
  std::string name = {};         // of the run
  std::string config_hash = {};  // of its resolved config, as state.json has it
  std::int64_t parameters = 0;   // elements, of one member
  double seconds = 0;
  std::vector<std::string> missing = {};  // what the run folder lacks because it could not be written, as sentences
  std::vector<Changed> changes = {};      // of its numbers, in order
  bool continues = false;                 // --resume goes on with it
  bool is_ensemble = false;
  std::vector<std::string> classes = {};  // their names; empty where they are numbers
  bool normalised_targets = false;        // the loss is in units of their standard deviations
  std::vector<MemberEnded> members = {};  // one without an ensemble
  std::int64_t steps_skipped() const {    // by all members
    std::int64_t sum = 0;
    for (const MemberEnded& member : members) sum += member.steps_skipped;
    return sum;
  }
};

using Event = std::variant<Started, Working, Progressed, std::vector<Logged>, std::vector<EpochEnded>,
                           std::vector<Evaluated>, Changed, Noted, Warned, Ended>;

class Consumer {
 public:
  virtual ~Consumer() = default;
  virtual void on(const Event& event) = 0;
  // Whether it shows the measures of Progressed, which are read for it then.
  virtual bool wants_live_measures() const { return false; }
};

}  // namespace pmaptrain::train
