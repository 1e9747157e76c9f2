#include "core/sweep/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/run/run_folder.h"
#include "core/sweep/data_files.h"
#include "core/sweep/reconcile.h"
#include "core/sweep/result.h"

namespace pmaptrain::sweep {
namespace {

namespace fs = std::filesystem;

// A run that may be tried again is tried once more, alone.
constexpr std::int64_t most_attempts = 2;

// A run whose sweep was killed gets a signal, and may still write its last checkpoint.
void wait_until_free(const fs::path& run) {
  train::RunFolderOptions options;
  options.resume = true;
  for (int i = 0; i < 600; ++i) {
    try {
      return train::RunFolder::check(run, options);
    } catch (const Error& error) {
      if (error.status() != ExitStatus::resource) return;  // the run itself tells it
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

class Scheduler {
 public:
  Scheduler(const spec::Sweep& sweep, const SweepOptions& options, Launcher& launcher, const SweepFolder& folder,
            Store& store, const Plan& plan, std::vector<Row> rows)
      : sweep_(sweep),
        options_(options),
        launcher_(launcher),
        folder_(folder),
        store_(store),
        plan_(plan),
        rows_(std::move(rows)),
        concurrency_(concurrency_of(sweep, plan, options.cores)) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> programs;
    for (std::size_t i = 0; i < plan.rows.size(); ++i) {
      programs.emplace(std::pair(plan.rows[i].number, plan.rows[i].replicate), plan.program_of[i]);
    }
    for (const Row& row : rows_) program_of_.push_back(programs.at({row.number, row.replicate}));
  }

  std::vector<Row> run() {
    progress_.all_steps = steps_left();
    const auto rungs = static_cast<std::int64_t>(plan_.programs.front().rungs.size());
    try {
      for (std::int64_t rung = first_rung(); rung < rungs && !stopping(); ++rung) {
        run_rung(rung);
        if (!stopping()) decide(rung, rung + 1 == rungs);
      }
    } catch (...) {
      stop_all();
      throw;
    }
    return std::move(rows_);
  }

 private:
  bool stopping() const { return options_.stop != nullptr && *options_.stop != 0; }

  const TrialProgram& program(std::size_t row) const { return plan_.programs[program_of_[row]]; }
  bool is_last_rung(std::size_t row, std::int64_t rung) const {
    return rung + 1 == static_cast<std::int64_t>(program(row).rungs.size());
  }

  // The lowest rung with a run that has no result yet; a decision that was not made is made then.
  std::int64_t first_rung() const {
    std::int64_t rung = 0;
    for (const Row& row : rows_) rung = std::max(rung, row.rung);
    for (const Row& row : rows_) {
      if (row.status == Status::waiting) rung = std::min(rung, row.rung);
    }
    return rung;
  }

  void run_rung(std::int64_t rung) {
    std::deque<std::size_t> first, again;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].rung != rung || rows_[i].status != Status::waiting) continue;
      (rows_[i].attempts == 0 ? first : again).push_back(i);
    }
    run_all(first, again, concurrency_);
    std::sort(again.begin(), again.end());
    run_all(again, again, {1, options_.cores});
  }

  // Runs the rows of `queue`, so many at once, until it is empty. Rows to be tried again are added to `again`.
  void run_all(std::deque<std::size_t>& queue, std::deque<std::size_t>& again, Concurrency concurrency) {
    bool stopped = false;
    while (!queue.empty() || !running_.empty()) {
      while (!queue.empty() && !stopping() && std::ssize(running_) < concurrency.runs) {
        start(queue.front(), concurrency.workers);
        queue.pop_front();
      }
      if (stopping() && !std::exchange(stopped, true)) launcher_.stop();
      if (running_.empty()) break;  // stopped, with rows left
      if (const std::optional<Exit> exit = launcher_.wait(0.1)) {
        if (end(*exit)) again.push_back(exit->job);
      }
    }
  }

  void start(std::size_t index, int workers) {
    Row& row = rows_[index];
    const std::string name = trial_name(row.number, row.replicate);
    const fs::path run = folder_.path() / row.run_folder;
    const fs::path config = folder_.write_config(name, row.config);
    wait_until_free(run);
    std::vector<std::string> arguments = {"run",      config.string(), "--run-dir",  run.string(),
                                          "--resume", "--json",        "--progress", "none"};
    if (!program(index).sets_workers && !program(index).on_gpus) {
      arguments.insert(arguments.end(), {"--workers", std::to_string(workers)});
    }
    if (!is_last_rung(index, row.rung)) {
      const std::int64_t steps = program(index).rungs[static_cast<std::size_t>(row.rung)];
      arguments.insert(arguments.end(), {"--max-steps", std::to_string(steps)});
    }
    row.status = Status::running;
    store_.update(row);
    launcher_.start(index, arguments);
    running_.insert(index);
    tell(nullptr);
  }

  // Records how a run ended. Returns whether it is to be tried again.
  bool end(const Exit& exit) {
    running_.erase(exit.job);
    Row& row = rows_[exit.job];
    const std::int64_t steps_before = row.steps;
    const Result result = result_of(exit, folder_.path() / row.run_folder, sweep_.spec(), stopping());
    row.steps = std::max(row.steps, result.steps);
    row.seconds = std::max(row.seconds, result.seconds);
    row.error = result.error;
    row.exit_status = result.exit_status;
    progress_.steps += row.steps - steps_before;
    bool again = false;
    switch (result.kind) {
      case Result::Kind::value:
        row.status = Status::done;
        row.value = result.value;
        break;
      case Result::Kind::stopped: row.status = Status::stopped; break;
      case Result::Kind::died:
        again = ++row.attempts < most_attempts;
        row.status = again ? Status::waiting : Status::failed;
        break;
      case Result::Kind::failed: row.status = Status::failed; break;
    }
    if (row.status == Status::failed) row.value.reset();
    store_.update(row);
    tell(&row);
    return again && !stopping();
  }

  // Records the values of a rung, and which trials go on.
  void decide(std::int64_t rung, bool last) {
    std::map<std::int64_t, std::vector<std::size_t>> trials;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].rung == rung) trials[rows_[i].number].push_back(i);
    }
    std::vector<Score> scores;
    for (const auto& [number, indices] : trials) {
      std::vector<std::optional<double>> values;
      for (const std::size_t i : indices) values.push_back(rows_[i].value);
      scores.push_back(score_of(number, values));
    }
    std::set<std::int64_t> chosen;
    if (!last) {
      for (const std::int64_t number : advancing(scores, sweep_.spec().mode, sweep_.spec().factor))
        chosen.insert(number);
    }
    std::vector<RungRow> records;
    std::vector<Row> changed;
    for (const auto& [number, indices] : trials) {
      for (const std::size_t i : indices) {
        const bool advanced = chosen.contains(number);
        records.push_back({rung, number, rows_[i].replicate, rows_[i].steps, rows_[i].value, advanced});
        if (!advanced) continue;
        rows_[i].rung = rung + 1;
        rows_[i].status = Status::waiting;
        rows_[i].attempts = 0;
        changed.push_back(rows_[i]);
      }
    }
    store_.decide(records, changed);
    if (!last) {
      progress_.note =
          fmt::format("rung {}: {} of {} go on", rung + 1, chosen.size(), counted(std::ssize(trials), "trial"));
      tell(nullptr);
    }
  }

  // Steps that are planned from here on.
  std::int64_t steps_left() const {
    std::int64_t sum = 0;
    const TrialProgram& first = plan_.programs.front();
    std::int64_t trials = std::ssize(plan_.trials), before = 0;
    for (const std::int64_t rung : first.rungs) {
      sum += trials * sweep_.spec().replicates * (rung - before);
      before = rung;
      trials = std::max<std::int64_t>(1, trials / sweep_.spec().factor);
    }
    for (const Row& row : rows_) sum -= row.steps;
    return std::max<std::int64_t>(sum, 0);
  }

  void tell(const Row* ended) {
    if (!options_.told) return;
    progress_.waiting = progress_.running = progress_.done = progress_.failed = 0;
    std::map<std::int64_t, std::vector<std::optional<double>>> values;
    std::map<std::int64_t, std::int64_t> rungs;
    for (const Row& row : rows_) {
      progress_.waiting += row.status == Status::waiting || row.status == Status::stopped ? 1 : 0;
      progress_.running += row.status == Status::running ? 1 : 0;
      progress_.done += row.status == Status::done ? 1 : 0;
      progress_.failed += row.status == Status::failed ? 1 : 0;
      values[row.number].push_back(row.value);
    }
    std::vector<Score> scores;
    for (const auto& [number, one] : values) scores.push_back(score_of(number, one));
    rank(scores, sweep_.spec().mode);
    progress_.best = scores.front().value ? std::optional(scores.front()) : std::nullopt;
    for (const Row& row : rows_) {
      if (progress_.best && row.number == progress_.best->number) progress_.best_parameters = row.parameters;
    }
    progress_.seconds = seconds_since(began_);
    progress_.ended = ended;
    options_.told(progress_);
    progress_.note.clear();
  }

  // The sweep cannot go on: its runs end with checkpoints, and --resume finds them.
  void stop_all() noexcept {
    try {
      launcher_.stop();
      while (!running_.empty()) {
        if (const std::optional<Exit> exit = launcher_.wait(1)) running_.erase(exit->job);
      }
    } catch (...) {
      running_.clear();
    }
  }

  const spec::Sweep& sweep_;
  const SweepOptions& options_;
  Launcher& launcher_;
  const SweepFolder& folder_;
  Store& store_;
  const Plan& plan_;
  std::vector<Row> rows_;
  std::vector<std::size_t> program_of_;
  Concurrency concurrency_;
  std::set<std::size_t> running_;
  Progress progress_;
  Clock::time_point began_ = Clock::now();
};

Numbers numbers_in(const Store& store) {
  Numbers numbers;
  for (const Row& row : store.rows()) {
    if (row.replicate == 0) numbers.emplace(row.parameters, row.number);
  }
  return numbers;
}

}  // namespace

std::vector<Row> run_sweep(const spec::Sweep& sweep, const SweepOptions& options, Launcher& launcher) {
  SweepFolder::check(options.folder, options.how);
  std::optional<SweepFolder> folder;
  std::optional<Store> store;
  std::error_code error;
  if (options.how.resume && fs::exists(options.folder / "sweep.sqlite", error)) {
    folder = SweepFolder::claim(options.folder, options.how);
    store.emplace(folder->path(), Store::Access::write);
  }
  const bool continues = store && !store->rows().empty();
  const Plan plan = plan_sweep(sweep, options.cores, continues ? numbers_in(*store) : Numbers());
  const std::vector<DataFile> data =
      data_files_of(plan.data_paths, continues ? store->data_files() : std::vector<DataFile>());
  std::vector<Row> rows = plan.rows;
  if (continues) {
    rows = reconcile(sweep, plan, *store, data);
    store->decide({}, rows);
  } else {
    if (!folder) folder = SweepFolder::claim(options.folder, options.how);
    folder->write("sweep.yaml", sweep.resolved());
    if (!store) store.emplace(folder->path(), Store::Access::write);
    for (const auto& [name, text] : identity_of(sweep, plan)) store->set_text(name, text);
    store->set_data_files(data);
    store->add(rows);  // last: a store without rows begins anew
  }
  return Scheduler(sweep, options, launcher, *folder, *store, plan, std::move(rows)).run();
}

}  // namespace pmaptrain::sweep
