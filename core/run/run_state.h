// Everything that a step leaves behind: what a checkpoint holds, and what a resumed run begins with.
//
// The values of the module are its inputs of the groups params and state (the optimizer's slots, the count of updates,
// the epoch's sums); they are the tensors of a checkpoint. RunState is what the host holds beside them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/run/loss_spike.h"
#include "core/run/plateau.h"
#include "core/run/records/events.h"
#include "core/spec/change.h"

namespace pmaptrain::train {

// What log lines are compared with (LossWatch).
struct LossSums {
  std::vector<LossMean> means;
  std::int64_t line = 0;
  double loss_at_line = 0, examples_at_line = 0, loss_ended = 0, examples_ended = 0;
};

// What each member of an ensemble has of its own.
struct MemberState {
  std::int64_t steps = 0;          // attempted: the run's, or where it ended before the others
  std::int64_t steps_skipped = 0;  // of them, those that were not finite and changed nothing
  std::int64_t updates = 0;        // of them, those that changed the parameters

  // What was last reported.
  std::int64_t logged_step = 0;
  // By split: the last when the checkpoint was taken, with the lines that end a run. The summary of a run that ends
  // here may have others: of the evaluations after the last step, which come after its checkpoint, and of a step that a
  // guard took back.
  std::map<std::string, Measures> measures;
  Confusions confusions;
  std::int64_t evaluated_step = -1;
  // What the last lines say of a member that ends here: of a step, and of an epoch, that are due no line at the log
  // interval. The module's outputs are not saved, and a process may be killed before it writes these lines.
  std::optional<Logged> last_step;
  std::optional<EpochEnded> last_epoch;

  // What evaluations decided (Decisions).
  std::optional<Best> best;
  std::optional<Best> lost_best;  // better than `best`, but its checkpoint could not be written
  struct Waiting {
    std::string metric, mode;
    std::optional<double> best;
    std::int64_t waited = 0;
  };
  Waiting early_stopping;
  struct Plateau {
    std::string metric;
    PlateauState state;
  };
  Plateau plateau;

  std::optional<LossSums> loss_sums;  // none without train.loss_spike

  // A member that is finished whatever the duration: "early_stopping", or the guard that ended it ("nonfinite",
  // "loss_spike", "replicas"), and why.
  std::string finished, finished_why;
  // The others have gone on without it, and its last lines are written.
  bool left_behind = false;

  std::uint64_t seed = 0, data_seed = 0;

  // The updates until the change that gave the schedule, which it counts from; none: it began with the run, or there is
  // none.
  std::optional<std::int64_t> schedule_began;
};

struct RunState {
  // Progress.
  std::int64_t step = 0;            // steps attempted
  std::int64_t example_cursor = 0;  // positions of the sample stream consumed
  // The duration that the run first began with, or what was left of it at the change that gave its schedule: what
  // default lengths of schedules have.
  std::int64_t schedule_steps = 0;
  std::vector<spec::Change> changes;  // until this checkpoint, in order
  double seconds = 0;                 // of training, over all processes
  double epoch_seconds = 0;           // of the epoch so far
  // The length of metrics.jsonl without the lines that were written only because the run stopped.
  std::uint64_t metrics_bytes = 0;

  // A signal came before the evaluation after this step.
  bool evaluation_is_due = false;
  std::string best_mode;  // of what is best: "min" or "max"

  bool is_ensemble = false;
  std::vector<MemberState> members{1};  // one without an ensemble

  data::Encoding encoding;    // how the data was read
  data::Field input, target;  // of an example, without their origins

  // What the state belongs to.
  std::int64_t batch_size = 0, train_examples = 0;
  std::string config_hash;
  std::map<std::string, std::string> checksums;  // of the checkpoint's files, by name: "xxh3:<hexadecimal digits>"
};

// The document state.json, with its end of line and a checksum of its own.
std::string to_json(const RunState& state);

// Throws Error (data), which names `file`, for a document that is damaged: to_json() of what it says is another text.
RunState parse_run_state(const std::string& text, const std::string& file);

}  // namespace pmaptrain::train
