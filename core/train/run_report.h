// What a run tells of itself: events to its consumers and to the run folder's records, and the totals at its end.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/runtime/backend.h"
#include "core/train/evaluator.h"
#include "core/train/events.h"
#include "core/train/record_events.h"
#include "core/train/run_folder.h"
#include "core/train/run_state.h"
#include "core/train/setup.h"

namespace pmaptrain::train {

class RunReport {
 public:
  // Both outlive this; the module is what trains.
  RunReport(const Setup& setup, Module& module);

  // Starts the clock and the folder's records, and reports how the run begins: `steps` in all, on so many workers; of a
  // resumed run from `resumed` on.
  void begin(std::span<Consumer* const> consumers, const RunFolder& folder, const std::string& run_dir,
             std::int64_t steps, int workers, const RunState* resumed);
  // `unlogged`: whether the state, of the last step, is to have what last_step() reports.
  void save(RunState& state, bool unlogged) const;
  // Records that cannot be written say so once, as an event of their own.
  void emit(const Event& event);

  void progressed(std::int64_t step) { emit(Progressed{step, epoch_of(step)}); }
  // The last step's measures.
  void log(std::int64_t step);
  std::int64_t logged_step() const { return logged_step_; }
  // Reports the last step of the run, unless it has been logged: from the module, or what a resumed state has of it.
  void last_step(std::int64_t step);
  // Reports the means over the epoch, then the module's sums begin anew. Of epochs that are shorter than the log
  // interval only those at its steps are reported; the one at the `last` step is kept for last_epoch().
  void end_epoch(std::int64_t step, bool last);
  // Reports the epoch that ends with the run, unless it has been: its means so far.
  void last_epoch(std::int64_t step);
  void evaluated(std::int64_t step, const Evaluation& evaluation);

  // Fills in what `steps` steps amount to, of what was told until now.
  void add_totals(Ended& ended, std::int64_t steps) const;

  Records& records() { return *records_; }
  // From now on nothing is written.
  void leave_records() { std::erase(consumers_, &*records_); }

 private:
  std::int64_t epoch_of(std::int64_t step) const;
  std::int64_t examples_until(std::int64_t step) const;
  Started started(const std::string& run_dir, std::int64_t steps, int workers, std::int64_t first_step) const;
  EpochEnded epoch(std::int64_t step) const;
  void report(const EpochEnded& epoch);
  Logged logged(std::int64_t step) const;
  void report(const Logged& event);
  double output(std::size_t index) const;

  const Setup& setup_;
  Module& module_;
  std::vector<Consumer*> consumers_;
  std::optional<Records> records_;
  std::vector<std::string> recorder_warnings_;
  Clock::time_point begin_, logged_at_;
  double epoch_began_ = 0;
  std::int64_t logged_examples_ = 0, logged_step_ = 0;
  struct {
    std::int64_t step = 0;
    std::uint64_t metrics_bytes = 0;
  } before_line_;  // before the last step that was logged: the one before it, and the length of the lines
  std::optional<Logged> resumed_step_;        // the last step of the process before, where that was not logged
  std::optional<EpochEnded> unreported_;      // the last epoch, where its end was not reported
  std::int64_t reported_epoch_at_ = -1;       // the step of the last epoch's line
  std::map<std::string, Measures> measures_;  // the last ones, by split
};

}  // namespace pmaptrain::train
