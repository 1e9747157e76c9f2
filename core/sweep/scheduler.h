// Which run or ensemble is next, and what its end means for the rows of the store.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/base/clock.h"
#include "core/sweep/folder.h"
#include "core/sweep/live.h"
#include "core/sweep/plan.h"
#include "core/sweep/result.h"
#include "core/sweep/run.h"
#include "core/sweep/runners.h"
#include "core/sweep/store.h"

namespace pmaptrain::sweep {

class Scheduler {
 public:
  // All but `rows` outlive this; the store has these rows.
  Scheduler(const spec::Sweep& sweep, const SweepOptions& options, Runners& runners, const SweepFolder& folder,
            Store& store, const SweepPlan& plan, std::vector<Row> rows);

  // Runs rung after rung, until all rows have results or a signal came. Returns the rows. Throws Error if the sweep
  // cannot be recorded; runs are stopped then.
  std::vector<Row> run();

 private:
  // A process: a run of one row, or of an ensemble of rows, by member.
  struct Job {
    std::vector<std::size_t> rows;
    std::optional<std::int64_t> ensemble = {};
    std::size_t runner = 0;  // that it was given to
  };

  bool stopping() const { return options_.stop != nullptr && *options_.stop != 0; }
  const TrialProgram& program(std::size_t row) const { return plan_.programs[program_of_[row]]; }
  std::int64_t first_rung() const;

  void run_rung(std::int64_t rung);
  // Runs the jobs of `queue`, so many at once by runner, until it is empty; jobs to be tried again go to `again`.
  // `queue` and `again` may be one.
  void run_all(std::deque<Job>& queue, std::deque<Job>& again, const std::vector<Concurrency>& concurrency);
  // The runner with the fewest jobs of those that may have another one.
  std::optional<std::size_t> free_runner(const std::vector<Concurrency>& concurrency) const;
  void start(const Job& job, int workers);
  void prepare_ensemble(const Job& job, const std::filesystem::path& run);
  // Waits until no process of a sweep that was killed writes in the run folder. False where a signal came meanwhile.
  bool wait_until_free(const std::filesystem::path& run) const;
  // Record how a job ended. Return the jobs that are to be tried.
  std::vector<Job> end(const Job& job, const Exit& exit);
  std::vector<Job> end_run(std::size_t row, const Exit& exit);
  std::vector<Job> end_ensemble(const Job& job, const Exit& exit);
  void record(std::size_t row, const Result& result);

  // Records the values of a rung, and which trials go on.
  void decide(std::int64_t rung, bool last);
  // Writes the run folders of trials that leave their ensembles, as the rungs say.
  void leave_ensembles();

  std::int64_t steps_left() const;
  // The runs that go on.
  std::vector<RunningTrial> running_trials();
  std::filesystem::path folder_of(const Job& job) const;
  // Measured from the first steps that are seen: what comes before them prepares runs.
  std::optional<double> seconds_left();
  void tell(const Row* ended);
  void stop_all() noexcept;

  const spec::Sweep& sweep_;
  const SweepOptions& options_;
  Runners& runners_;
  const SweepFolder& folder_;
  Store& store_;
  const SweepPlan& plan_;
  std::vector<Row> rows_;
  std::vector<std::size_t> program_of_;
  std::map<std::size_t, Job> running_;       // by the number that the runner has of it
  std::map<std::size_t, LiveMetrics> live_;  // by the same
  std::size_t next_job_ = 0;
  Progress progress_;
  std::int64_t steps_ended_ = 0;  // of runs that have ended in this process
  std::int64_t next_ensemble_ = 0;
  struct Mark {
    Clock::time_point time;
    std::int64_t steps = 0;
  };
  std::optional<Mark> first_steps_, last_steps_;
  Clock::time_point told_ = Clock::now();
};

}  // namespace pmaptrain::sweep
