// What a run tells of itself: events to its consumers and to the run folder's records, and the totals at its end.
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

namespace pmaptrain::train {

struct Evaluation;

class RunReport {
 public:
  // Both outlive this; the module is what trains.
  RunReport(const Setup& setup, Module& module);

  // Starts the clock and the folder's records, and reports how the run begins: `steps` in all, by which workers; of a
  // resumed run from `resumed` on.
  void begin(std::span<Consumer* const> consumers, const RunFolder& folder, const std::string& run_dir,
             std::int64_t steps, const std::string& workers, const RunState* resumed);
  // Into a state that says which steps the run and its members have behind them; `step` is the last that was run.
  void save(RunState& state, std::int64_t step) const;
  // Records that cannot be written say so once, as an event of their own.
  void emit(const Event& event);

  void progressed(std::int64_t step, Measures live) { emit(Progressed{step, epoch_of(step), std::move(live)}); }
  // The step's measures, of these members, which have taken it; of those that a guard took back, those of their own.
  void log(std::int64_t step, std::span<const std::int64_t> members);
  // Reports the means over the epoch, then the module's sums begin anew. Of epochs that are shorter than the log
  // interval only those at its steps are reported; others are kept for last_lines() and save().
  void end_epoch(std::int64_t step, std::span<const std::int64_t> members);
  // A guard took back this step of a member and those after it: its last lines are of this one, whose outputs the
  // module has now.
  void took_back(std::int64_t step, std::int64_t member);
  // What ends with the last step of these members: that step, unless it has been logged, from the module, or what a
  // resumed state has of it; and the epoch's means so far, unless its end has been reported.
  void last_lines(std::int64_t step, std::span<const std::int64_t> members);
  // For the totals alone: the epoch's means so far.
  void note_epoch(std::int64_t step, std::span<const std::int64_t> members) { note(last_events(step, members).second); }
  // The same as last_lines(), of members that the others go on without: in metrics.jsonl alone, since what is shown is
  // of those.
  void left_behind(std::int64_t step, std::span<const std::int64_t> members);
  // After so many steps of the evaluation's member.
  void evaluated(const std::vector<Evaluation>& evaluations, std::span<const std::int64_t> steps);

  // Of a member whose loss never fell: its mean over the last epoch is neither below that over the first one nor below
  // the first step's. None of a resumed run, whose first step is not known, and of one that began with other parameters
  // than initial ones.
  std::optional<LossCourse> stuck_loss(std::int64_t member) const;

  // Fills in what `steps` steps amount to, of what was reported until now; `ended` has its members.
  void add_totals(Ended& ended, std::int64_t steps) const;

  Records& records() { return *records_; }
  // From now on nothing is written.
  void leave_records() { std::erase(consumers_, &*records_); }

 private:
  std::int64_t epoch_of(std::int64_t step) const;
  std::int64_t examples_until(std::int64_t step) const;
  std::int64_t step_of(std::int64_t member, std::int64_t step) const;
  Started started(const std::string& run_dir, std::int64_t steps, const std::string& workers,
                  std::int64_t first_step) const;
  EpochEnded epoch(std::int64_t step, std::int64_t member) const;
  void tell_changes(std::size_t reported);
  std::vector<Changed> all_changes() const;
  void report(std::vector<EpochEnded> epochs);
  std::pair<std::vector<Logged>, std::vector<EpochEnded>> last_events(std::int64_t step,
                                                                      std::span<const std::int64_t> members) const;
  void note(const std::vector<Logged>& lines);
  void note(const std::vector<EpochEnded>& epochs);
  void add_last(std::map<std::string, Measures>& measures, std::int64_t step, std::int64_t member) const;
  std::optional<Logged> last_step(std::int64_t step, std::int64_t member) const;
  Logged logged(std::int64_t step, std::int64_t member) const;
  void report(std::vector<Logged> lines);
  double output(std::size_t index, std::int64_t member) const;

  const Setup& setup_;
  Module& module_;
  std::vector<Consumer*> consumers_;
  std::optional<Records> records_;
  std::vector<std::string> recorder_warnings_;
  Clock::time_point begin_, logged_at_;
  double epoch_began_ = 0;
  std::int64_t epoch_began_after_ = 0;  // this step
  std::int64_t first_step_ = 0;         // where a resumed run continues
  std::int64_t logged_examples_ = 0, logged_step_ = 0;
  std::uint64_t bytes_before_line_ = 0;  // the length of the lines before the last step that was logged
  struct Reported {
    std::int64_t logged_step = 0, logged_before = 0;  // the last step that was logged, and the one before it
    std::optional<Logged> last_step;  // of a process before, where it was not logged; or the one that was taken back
    bool is_taken_back = false;
    std::optional<EpochEnded> unreported;      // the last epoch, where its end was not reported
    std::int64_t reported_epoch_at = -1;       // the step of the last epoch's line
    std::map<std::string, Measures> measures;  // the last ones, by split
    Confusions confusions = {};
    std::optional<double> first_loss = {};                        // of the first step
    std::optional<EpochEnded> first_epoch = {}, last_epoch = {};  // complete ones, reported or not
    void note_course(const EpochEnded& epoch) {
      if (!first_epoch) first_epoch = epoch;
      last_epoch = epoch;
    }
  };
  Reported& reported_of(std::int64_t member) { return reported_[static_cast<std::size_t>(member)]; }
  const Reported& reported_of(std::int64_t member) const { return reported_[static_cast<std::size_t>(member)]; }
  std::vector<Reported> reported_;  // by member
};

}  // namespace pmaptrain::train
