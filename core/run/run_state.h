// The state that a step leaves behind: a checkpoint holds it, and a resumed run begins with it.
//
// The tensors of a checkpoint are the module's inputs of the groups params and state (the optimizer's slots, the count
// of updates, the sums of the epoch). RunState is the state on the host.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/input/content.h"
#include "core/run/loss_spike.h"
#include "core/run/plateau.h"
#include "core/run/records/events.h"
#include "core/spec/change.h"

namespace pmaptrain::run {

// The state of LossWatch.
struct LossSums {
  std::vector<LossMean> means;                    // of earlier log lines, with which the next ones are compared
  std::int64_t line = 0;                          // the step of the last log line
  double loss_at_line = 0, examples_at_line = 0;  // sums of that step's epoch up to that step
  double loss_ended = 0, examples_ended = 0;      // sums since that step of epochs that have ended
};

// The state of one member of an ensemble.
struct MemberState {
  std::int64_t steps = 0;          // attempted steps; fewer than the run's if the member ended before the others
  std::int64_t steps_skipped = 0;  // steps among them that were not finite and changed nothing
  std::int64_t updates = 0;        // steps among them that changed the parameters

  // The last reported step and measures.
  std::int64_t logged_step = 0;
  // By split: the last measures when the checkpoint was taken, including the lines that end a run. The summary of a run
  // that ends here may have other measures, because evaluations after the last step follow its checkpoint, and because
  // a guard may have undone a step.
  std::map<std::string, Measures> measures;
  Confusions confusions;
  std::int64_t evaluated_step = -1;
  // The last lines of a member that ends here, for a step and an epoch that have no line at the log interval. They are
  // saved because the module's outputs are not, and because a process may be killed before it writes these lines.
  std::optional<Logged> last_step;
  std::optional<EpochEnded> last_epoch;

  // Decisions that follow from evaluations (Decisions).
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

  // Why the member has ended before the run's duration: "early_stopping" or the guard that ended it ("nonfinite",
  // "loss_spike", "replicas"), and the reason in words. Empty while it trains.
  std::string finished, finished_why;
  // Whether the other members have continued without it. Its last lines were written then.
  bool left_behind = false;

  std::uint64_t seed = 0, data_seed = 0;

  // The number of updates at which the schedule begins, if a change of the run set the schedule; none: there is no
  // schedule, or it began with the run.
  std::optional<std::int64_t> schedule_began;
};

struct RunState {
  // Progress.
  std::int64_t step = 0;            // steps attempted
  std::int64_t example_cursor = 0;  // positions of the sample stream consumed
  // The default length of schedules: the duration with which the run first began, or what was left of it at the change
  // that set the schedule.
  std::int64_t schedule_steps = 0;
  std::vector<spec::Change> changes;  // up to this checkpoint, in order
  double seconds = 0;                 // of training, in all processes
  double epoch_seconds = 0;           // of the current epoch
  // The length of metrics.jsonl without the lines that were written only because the run stopped.
  std::uint64_t metrics_bytes = 0;

  // Whether a signal prevented the evaluation after this step.
  bool evaluation_is_due = false;
  std::string best_mode;  // whether the best is the "min" or the "max"

  bool is_ensemble = false;
  std::vector<MemberState> members{1};  // one without an ensemble

  data::Encoding encoding;    // how the data was read
  data::Field input, target;  // of an example, without their places in the config

  // The config, data and files that the state belongs to. A run of an earlier version has no `contents`.
  input::Contents contents;
  std::string base;  // of a model with adapters: the identity of the base (setup::write_base)
  std::int64_t batch_size = 0, train_examples = 0;
  std::string config_hash;
  std::map<std::string, std::string> checksums;  // of the checkpoint's files, by name: "xxh3:<hexadecimal digits>"

  // Defined in its source: their code is long, and each source that copies or destroys one would compile it again.
  RunState();
  RunState(const RunState&);
  RunState(RunState&&) noexcept;
  RunState& operator=(const RunState&);
  RunState& operator=(RunState&&) noexcept;
  ~RunState();
};

// The document state.json, with its end of line and its own checksum.
std::string to_json(const RunState& state);

// Throws Error (data), which names `file`, for a damaged document: to_json() of the result must be `text`.
RunState parse_run_state(const std::string& text, const std::string& file);

}  // namespace pmaptrain::run
