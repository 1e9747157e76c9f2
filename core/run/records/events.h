// Events: what happens during a run, as values. The loop emits them. The progress bar, the plain log, log.txt,
// metrics.jsonl and summary.json are consumers, and no consumer can stop the training.
//
// Measurements are made for each member of an ensemble. An event with measurements is therefore a list of the members
// that took the step, in ascending order. A run without an ensemble has one member, without a number.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace pmaptrain::run {

// In the order in which they are shown; the first is the loss. Values may be NaN or infinite.
using Measures = std::vector<std::pair<std::string, double>>;

// Whether a measure may be NaN because the examples do not define it: roc_auc for examples of a single class.
inline bool may_be_undefined(const std::string& measure) {
  return measure.starts_with("roc_auc") || measure.starts_with("average_precision");
}

// The number of a member of an ensemble, from 0; none without an ensemble.
using MemberNumber = std::optional<std::int64_t>;

struct Started {
  std::string name;
  std::string run_dir;          // empty: nothing is written
  std::int64_t first_step = 0;  // steps completed before this process began (a resumed run)
  std::int64_t steps = 0;       // planned steps of the whole run
  std::int64_t steps_per_epoch = 0;
  std::vector<std::string> description;  // lines to show before the first step
  std::int64_t members = 1;              // of the ensemble
  std::string best_metric = "loss";      // the measure of evaluations that determines the best checkpoint
  bool largest_is_best = false;
  std::int64_t epochs = 0;  // of the whole run, also where --max-steps ends it before; 0: those of `steps`
};

// Work that takes a while and is not a training step: "evaluating validation". Only the bar shows it.
struct Working {
  std::string what;
  std::int64_t done = 0, total = 0;  // total 0: the amount is unknown
};

// A change that a resumed run makes from the step after this one on (--change). Values are YAML.
struct Changed {
  std::int64_t step = 0, epoch = 1;
  std::string key, before, value;
};

// After every step. Only the bar shows it.
struct Progressed {
  std::int64_t step = 0;   // completed steps
  std::int64_t epoch = 1;  // the epoch of this step, from 1
  // The measures of one of the last steps; the medians of several members. Present now and then, for consumers that
  // want live measures.
  Measures measures = {};
};

// At the log interval, and at the first and last step: the measures of this step's batch before its update.
struct Logged {
  std::int64_t step = 0, epoch = 1;
  Measures measures;
  double learning_rate = 0, grad_norm = 0, examples_per_second = 0, seconds = 0;  // since the start of training
  MemberNumber member = std::nullopt;
};

// At the end of each epoch, and at the end of the run: means over the examples of the epoch so far.
struct EpochEnded {
  std::int64_t step = 0, epoch = 1;
  Measures measures;
  std::int64_t examples = 0;  // without padding
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
  // "best": of the parameters of that checkpoint, which were trained for `step` steps. Empty: of the last ones.
  std::string checkpoint = {};
};

// By split, for the metric confusion_matrix: [true class][predicted class].
using Confusions = std::map<std::string, std::vector<std::vector<double>>>;
// Measures by split, in the order train, validation, test.
using SplitMeasures = std::vector<std::pair<std::string, Measures>>;

// A note that something happens as configured, such as a decrease of the learning rate on a plateau.
struct Noted {
  std::string text;
};

struct Warned {
  std::string text;
  bool stops = false;  // whether a guard ends the run: shown as an error
};

// True and learned values, for sources that know the true ones.
struct Comparison {
  std::string parameter;
  std::vector<double> initial, learned, truth;  // truth may be empty; then initial and learned values are shown
};

struct Best {
  std::int64_t step = 0;
  std::string metric;
  double value = 0;
  std::optional<double> loss = {};  // of the same evaluation, which decides between equal values
};

// The checkpoint that eval, predict and export use by default, where it is not the last one.
struct Selected {
  std::string checkpoint;  // "best"
  std::int64_t step = 0;
  SplitMeasures measures;  // for train, means over the epoch up to that step; empty: not known
  Confusions confusions = {};
};

// The results of a member when the run ends.
struct MemberEnded {
  // Under the last parameters: for train, means over the current or just ended epoch.
  SplitMeasures final_measures;
  std::optional<Best> best;        // the best evaluation that has a checkpoint, if any
  std::int64_t steps = 0;          // fewer than the run's if it ended before the others
  std::int64_t steps_skipped = 0;  // steps among them that changed nothing (train.on_nonfinite: skip)
  std::string reason;              // why it ended early: early_stopping, nonfinite or another guard; else empty
  std::vector<Comparison> comparisons;
  Confusions confusions = {};  // of the last evaluations
  std::optional<Selected> selected = {};
  // The keys in which members differ, and this member's values: "optimizer.learning_rate", "0.001".
  std::vector<std::pair<std::string, std::string>> varied = {};
};

struct Ended {
  std::string status;  // done | stopped | failed
  std::string reason;  // duration | early_stopping | max_steps | max_time | signal | guard | error
  int exit_status = 0;
  std::int64_t steps = 0, epochs = 0, examples_seen = 0, examples_skipped = 0;
  std::string run_dir;
  std::string name = {};         // of the run
  std::string config_hash = {};  // of the resolved config, as in state.json
  std::int64_t parameters = 0;   // elements, of one member
  double seconds = 0;
  std::vector<std::string> missing = {};  // sentences about files of the run folder that could not be written
  std::vector<Changed> changes = {};      // of the run's numbers, in order
  bool continues = false;                 // whether --resume can continue the run
  bool is_ensemble = false;
  std::vector<std::string> classes = {};  // names of classes; empty if classes have only numbers
  bool normalised_targets = false;        // the loss is in units of their standard deviations
  std::vector<MemberEnded> members = {};  // one without an ensemble
  std::int64_t steps_skipped() const {    // the sum over all members
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
  // Whether this consumer shows the measures of Progressed. They are read only if a consumer does.
  virtual bool wants_live_measures() const { return false; }
};

}  // namespace pmaptrain::run
