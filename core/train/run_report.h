// Reports a run: emits events to its consumers and to the run folder's records, and computes the totals at its end.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/run/records/events.h"
#include "core/run/records/records.h"
#include "core/run/run_folder.h"
#include "core/run/run_state.h"
#include "core/runtime/backend.h"
#include "core/setup/setup.h"
#include "core/train/worth.h"

namespace pmaptrain::evaluate {
struct Evaluation;
}

namespace pmaptrain::train {

class RunReport {
 public:
  // Both outlive this; `module` is the module that trains.
  RunReport(const setup::Setup& setup, Module& module);

  // Starts the clock and the folder's records, and reports how the run begins: with `steps` steps in all, on `workers`,
  // and, for a resumed run, after `resumed`. `notes` are told after those of the config.
  void begin(std::span<run::Consumer* const> consumers, const run::RunFolder& folder, const std::string& run_dir,
             std::int64_t steps, const std::string& workers, std::span<const std::string> notes,
             const run::RunState* resumed);
  // Stores what was reported in a state that already has the steps of the run and its members. `step` is the last step
  // that was run.
  void save(run::RunState& state, std::int64_t step) const;
  // Emits an event. Each kind of record that cannot be written is reported once, by an event of its own.
  void emit(const run::Event& event);

  // The entry that has the outputs of the step that is reported next.
  void read_outputs_of(std::size_t entry) { outputs_entry_ = entry; }
  void report_progress(std::int64_t step, run::Measures live) {
    emit(run::Progressed{step, epoch_of(step), std::move(live)});
  }
  // Logs the measures of `step`, which these members have taken. For a member with an undone step (note_undone_step),
  // logs the measures of that step instead.
  void log(std::int64_t step, std::span<const std::int64_t> members);
  // Reports the means over the epoch, then resets the module's sums. If epochs are shorter than the log interval,
  // reports only the epochs that end at a step of that interval; the means of other epochs are kept for
  // report_last_lines() and save().
  void end_epoch(std::int64_t step, std::span<const std::int64_t> members);
  // To be called when a guard has undone this step of a member and all later ones, while the module holds the outputs
  // of this step. The member's last lines then report this step, so that they show the values that made it stop.
  void note_undone_step(std::int64_t step, std::int64_t member);
  // Emits the events that are missing after the last step of these members: Logged for that step, unless it was logged,
  // and EpochEnded for the current epoch, unless its end was reported. The values are those of the module or, if a
  // resumed run takes no step, those of its checkpoint.
  void report_last_lines(std::int64_t step, std::span<const std::int64_t> members);
  // Keeps the means of the current epoch for the totals, without reporting them.
  void note_epoch(std::int64_t step, std::span<const std::int64_t> members);
  // The same as report_last_lines(), for finished members without which the others continue. Writes to metrics.jsonl
  // only, because displays show the other members.
  void report_left_behind(std::int64_t step, std::span<const std::int64_t> members);
  // Reports evaluations. `steps` has the number of steps after which the parameters of each evaluation's member were
  // reached. `checkpoint` is the checkpoint that has these, empty for the last ones.
  void report_evaluations(const std::vector<evaluate::Evaluation>& evaluations, std::span<const std::int64_t> steps,
                          const std::string& checkpoint);

  // The course of the member's loss if the loss never decreased: its mean over the last epoch is not below the mean
  // over the first epoch and not below the loss of the first step; or the two means are almost equal. None otherwise,
  // for a resumed run, whose first step is not known, and for a run that begins with the parameters of a file.
  std::optional<LossCourse> stuck_loss(std::int64_t member) const;

  // Sets the totals of a run of `steps` steps from what was reported. `ended` already has its members.
  void add_totals(run::Ended& ended, std::int64_t steps) const;

  run::Records& records() { return *records_; }
  // Removes the run folder's records from the consumers: from now on, no event is recorded.
  void detach_records() { std::erase(consumers_, &*records_); }

 private:
  std::int64_t epoch_of(std::int64_t step) const;
  std::int64_t examples_until(std::int64_t step) const;
  std::int64_t step_of(std::int64_t member, std::int64_t step) const;
  run::Started started(const std::string& run_dir, std::int64_t steps, const std::string& workers,
                       std::int64_t first_step) const;
  void tell_changes(std::size_t reported);
  std::vector<run::Changed> all_changes() const;
  // By member. Those that are read from the module are read by all processes together.
  using Lines = std::map<std::int64_t, run::Logged>;
  using Epochs = std::map<std::int64_t, run::EpochEnded>;
  Lines read_lines(std::int64_t step, std::span<const std::int64_t> members) const;
  Epochs read_epochs(std::int64_t step, std::span<const std::int64_t> members) const;
  Lines last_lines(std::int64_t step, std::span<const std::int64_t> members) const;
  Epochs last_epochs(std::int64_t step, std::span<const std::int64_t> members) const;
  void report(std::vector<run::EpochEnded> epochs);
  void note(const std::vector<run::Logged>& lines);
  void note(const std::vector<run::EpochEnded>& epochs);
  void report(std::vector<run::Logged> lines);

  const setup::Setup& setup_;
  Module& module_;
  std::vector<run::Consumer*> consumers_;
  std::optional<run::Records> records_;
  std::vector<std::string> recorder_warnings_;
  std::size_t outputs_entry_;
  Clock::time_point begin_, logged_at_;
  double epoch_began_ = 0;
  std::int64_t epoch_began_after_ = 0;  // the number of steps before the epoch
  std::int64_t first_step_ = 0;         // the step from which a resumed run continues
  std::int64_t logged_examples_ = 0, logged_step_ = 0;
  std::uint64_t bytes_before_line_ = 0;  // the length of metrics.jsonl before the last logged step
  struct Reported {
    std::int64_t logged_step = 0, logged_before = 0;  // the last step that was logged, and the one before
    std::optional<run::Logged> last_step;  // an unlogged step of an earlier process, or a step that was undone
    bool is_undone = false;
    std::optional<run::EpochEnded> unreported;      // the last epoch, if its end was not reported
    std::int64_t reported_epoch_at = -1;            // the step of the last epoch's line
    std::map<std::string, run::Measures> measures;  // the last measures, by split
    run::Confusions confusions = {};
    std::map<std::string, std::int64_t> evaluated_at = {};             // by split: the step of the last evaluation
    std::optional<double> first_loss = {};                             // of the first step
    std::optional<run::EpochEnded> first_epoch = {}, last_epoch = {};  // complete ones, reported or not
    void note_course(const run::EpochEnded& epoch) {
      if (!first_epoch) first_epoch = epoch;
      last_epoch = epoch;
    }
  };
  Reported& reported_of(std::int64_t member) { return reported_[static_cast<std::size_t>(member)]; }
  const Reported& reported_of(std::int64_t member) const { return reported_[static_cast<std::size_t>(member)]; }
  std::vector<Reported> reported_;  // by member
};

}  // namespace pmaptrain::train
