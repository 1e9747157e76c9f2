#include "core/sweep/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/run/run_folder.h"
#include "core/sweep/ensembles.h"
#include "core/sweep/members.h"

namespace pmaptrain::sweep {
namespace {

namespace fs = std::filesystem;

// A run that may be tried again is tried once more, alone.
constexpr std::int64_t most_attempts = 2;

}  // namespace

Scheduler::Scheduler(const spec::Sweep& sweep, const SweepOptions& options, Runners& runners, const SweepFolder& folder,
                     Store& store, const SweepPlan& plan, std::vector<Row> rows)
    : sweep_(sweep),
      options_(options),
      runners_(runners),
      folder_(folder),
      store_(store),
      plan_(plan),
      rows_(std::move(rows)),
      program_of_(programs_of(plan, rows_)) {
  next_ensemble_ = std::strtoll(store.text("next_ensemble").c_str(), nullptr, 10);
}

std::vector<Row> Scheduler::run() {
  progress_.all_steps = steps_left();
  const auto rungs = static_cast<std::int64_t>(plan_.programs.front().rungs.size());
  try {
    leave_ensembles();
    for (std::int64_t rung = first_rung(); rung < rungs && !stopping(); ++rung) {
      run_rung(rung);
      if (stopping()) break;
      decide(rung, rung + 1 == rungs);
      leave_ensembles();
    }
  } catch (...) {
    stop_all();
    throw;
  }
  return std::move(rows_);
}

// The lowest rung with a run that has no result yet; without any the highest one, whose decision is made then.
std::int64_t Scheduler::first_rung() const {
  std::int64_t rung = 0;
  for (const Row& row : rows_) rung = std::max(rung, row.rung);
  for (const Row& row : rows_) {
    if (row.status == Status::waiting) rung = std::min(rung, row.rung);
  }
  return rung;
}

void Scheduler::run_rung(std::int64_t rung) {
  std::deque<Job> first, again, ensembles;
  std::map<std::int64_t, Job> by_ensemble;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if (row.rung != rung || row.status != Status::waiting) continue;
    if (row.ensemble >= 0) {
      Job& job = by_ensemble[row.ensemble];
      job.ensemble = row.ensemble;
      job.rows.push_back(i);
    } else {
      (row.attempts == 0 ? first : again).push_back({{i}});
    }
  }
  for (auto& [number, job] : by_ensemble) {
    std::sort(job.rows.begin(), job.rows.end(),
              [this](std::size_t a, std::size_t b) { return rows_[a].member < rows_[b].member; });
    ensembles.push_back(std::move(job));
  }
  // An ensemble uses all cores of a process. What is left of one that did not end well is tried after the others,
  // alone.
  const std::vector<Runner>& runners = runners_.all();
  std::vector<Concurrency> alone(runners.size(), {0, 1});
  alone.front() = {1, runners.front().cores};
  std::deque<Job> halves;
  run_all(ensembles, halves, one_each(sweep_, plan_, runners));
  run_all(halves, halves, alone);
  run_all(first, again, concurrency_of(sweep_, plan_, runners));
  std::sort(again.begin(), again.end(), [](const Job& a, const Job& b) { return a.rows < b.rows; });
  run_all(again, again, alone);
}

std::optional<std::size_t> Scheduler::free_runner(const std::vector<Concurrency>& concurrency) const {
  std::vector<int> jobs(concurrency.size());
  for (const auto& [number, job] : running_) ++jobs[job.runner];
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i] < concurrency[i].runs && (!found || jobs[i] < jobs[*found])) found = i;
  }
  return found;
}

void Scheduler::run_all(std::deque<Job>& queue, std::deque<Job>& again, const std::vector<Concurrency>& concurrency) {
  bool stopped = false;
  while (!queue.empty() || !running_.empty()) {
    while (!queue.empty() && !stopping()) {
      const std::optional<std::size_t> runner = free_runner(concurrency);
      if (!runner) break;
      Job job = std::move(queue.front());
      queue.pop_front();
      job.runner = *runner;
      start(job, concurrency[*runner].workers);
    }
    if (stopping() && !std::exchange(stopped, true)) {
      runners_.stop();
      progress_.note = "stopping all trials with checkpoints; a second signal ends at once";
      tell(nullptr);
    }
    if (running_.empty()) break;  // stopped, with jobs left
    const std::optional<Exit> exit = runners_.wait(0.1);
    if (!exit && seconds_since(told_) > 1) tell(nullptr);
    if (exit) {
      const Job job = std::move(running_.at(exit->job));
      running_.erase(exit->job);
      live_.erase(exit->job);
      for (Job& one : end(job, *exit)) again.push_back(std::move(one));
    }
  }
}

// The config of all members that the ensemble began with; those that are not in the job have left it.
void Scheduler::prepare_ensemble(const Job& job, const fs::path& run) {
  std::set<std::int64_t> kept;
  for (const std::size_t i : job.rows) kept.insert(rows_[i].member);
  keep_members(run, kept);
}

bool Scheduler::wait_until_free(const fs::path& run) const {
  run::RunFolderOptions options;
  options.resume = true;
  constexpr double most_seconds = 120;
  const Clock::time_point began = Clock::now();
  while (!stopping()) {
    try {
      run::RunFolder::check(run, options);
      return true;
    } catch (const Error& error) {
      if (error.status() != ExitStatus::resource) return true;  // the run itself tells it
      if (seconds_since(began) > most_seconds) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

fs::path Scheduler::folder_of(const Job& job) const {
  return folder_.path() / (job.ensemble ? ensemble_folder(*job.ensemble) : rows_[job.rows.front()].run_folder);
}

void Scheduler::start(const Job& job, int workers) {
  const std::size_t first = job.rows.front();
  std::string name, config;
  const fs::path run = folder_of(job);
  if (job.ensemble) {
    std::vector<const Row*> members;
    for (const Row& row : rows_) {
      if (row.ensemble == *job.ensemble) members.push_back(&row);
    }
    std::sort(members.begin(), members.end(), [](const Row* a, const Row* b) { return a->member < b->member; });
    name = fmt::format("ensemble-{:04}", *job.ensemble);
    config = config_of_ensemble(members, sweep_.spec().name + "-" + name);
  } else {
    name = trial_name(rows_[first].number, rows_[first].replicate);
    config = rows_[first].config;
  }
  // Another process may be in another folder.
  const auto path_for_runner = [&](const fs::path& path) {
    return (job.runner == 0 ? path : fs::absolute(path)).string();
  };
  const std::string file = path_for_runner(folder_.write_config(name, config));
  if (!wait_until_free(run)) return;
  if (job.ensemble) prepare_ensemble(job, run);
  std::vector<std::string> arguments = {"run",      file,     "--run-dir",  path_for_runner(run),
                                        "--resume", "--json", "--progress", "none"};
  if (!program(first).sets_workers && !program(first).on_gpus) {
    arguments.insert(arguments.end(), {"--workers", std::to_string(workers)});
  }
  const std::vector<std::int64_t>& rungs = program(first).rungs;
  const auto rung = static_cast<std::size_t>(rows_[first].rung);
  if (rung + 1 < rungs.size()) arguments.insert(arguments.end(), {"--max-steps", std::to_string(rungs[rung])});
  std::vector<Row> changed;
  for (const std::size_t i : job.rows) {
    rows_[i].status = Status::running;
    changed.push_back(rows_[i]);
  }
  store_.decide({}, changed);
  runners_.start(next_job_, job.runner, arguments);
  running_.emplace(next_job_++, job);
  tell(nullptr);
}

std::vector<Scheduler::Job> Scheduler::end(const Job& job, const Exit& exit) {
  return job.ensemble ? end_ensemble(job, exit) : end_run(job.rows.front(), exit);
}

std::vector<Scheduler::Job> Scheduler::end_run(std::size_t index, const Exit& exit) {
  const fs::path run = folder_.path() / rows_[index].run_folder;
  record(index, result_of(exit, run, sweep_.spec(), stopping()));
  store_.update(rows_[index]);
  tell(&rows_[index]);
  if (rows_[index].status != Status::waiting || stopping()) return {};
  return {Job{{index}}};
}

std::vector<Scheduler::Job> Scheduler::end_ensemble(const Job& job, const Exit& exit) {
  const fs::path run = folder_of(job);
  const Result whole = result_of(exit, run, sweep_.spec(), stopping());
  const std::optional<run::Ended> ended = read_summary(run);
  std::vector<Row> changed;
  std::vector<Job> again;
  if (whole.kind == Result::Kind::value && ended) {
    for (const std::size_t i : job.rows) {
      record(i, result_of_member(*ended, sweep_.spec(), static_cast<std::size_t>(rows_[i].member)));
    }
  } else if (whole.kind == Result::Kind::stopped) {
    for (const std::size_t i : job.rows) record(i, whole);
  } else if (whole.kind == Result::Kind::died && whole.exit_status != static_cast<int>(ExitStatus::resource) &&
             rows_[job.rows.front()].attempts + 1 < most_attempts) {
    // It goes on from its last checkpoint.
    for (const std::size_t i : job.rows) record(i, whole);
    again.push_back(job);
  } else {
    // It has too many members, or one that ends it: a half without that one ends well.
    halve_ensemble(rows_, job.rows, next_ensemble_);
    store_.set_text("next_ensemble", std::to_string(next_ensemble_));
    std::map<std::int64_t, Job> halves;
    for (const std::size_t i : job.rows) {
      const std::int64_t ensemble = rows_[i].ensemble;
      if (ensemble < 0) {
        again.push_back({{i}});
        continue;
      }
      halves[ensemble].ensemble = ensemble;
      halves[ensemble].rows.push_back(i);
    }
    for (auto& [number, half] : halves) again.push_back(std::move(half));
    progress_.note = fmt::format("{}, trained together, ended early ({}); they are tried again in two halves",
                                 counted(std::ssize(job.rows), "trial"), whole.error);
  }
  for (const std::size_t i : job.rows) changed.push_back(rows_[i]);
  store_.decide({}, changed);
  for (const std::size_t i : job.rows) {
    if (again.empty()) tell(&rows_[i]);
  }
  if (!again.empty()) tell(nullptr);
  return stopping() ? std::vector<Job>() : again;
}

void Scheduler::record(std::size_t index, const Result& result) {
  Row& row = rows_[index];
  steps_ended_ += std::max<std::int64_t>(result.steps - row.steps, 0);
  row.steps = std::max(row.steps, result.steps);
  row.seconds = std::max(row.seconds, result.seconds);
  row.error = result.error;
  row.exit_status = result.exit_status;
  switch (result.kind) {
    case Result::Kind::value:
      row.status = Status::done;
      row.value = result.value;
      break;
    case Result::Kind::stopped: row.status = Status::stopped; break;
    case Result::Kind::died: row.status = ++row.attempts < most_attempts ? Status::waiting : Status::failed; break;
    case Result::Kind::failed: row.status = Status::failed; break;
  }
  if (row.status == Status::failed) row.value.reset();
}

void Scheduler::decide(std::int64_t rung, bool last) {
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
    for (const std::int64_t number : advancing(scores, sweep_.spec().mode, sweep_.spec().factor)) chosen.insert(number);
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
  if (last) return;
  progress_.note = fmt::format("rung {}: {} of {} {} on", rung + 1, chosen.size(), counted(std::ssize(trials), "trial"),
                               chosen.size() == 1 ? "goes" : "go");
  tell(nullptr);
}

void Scheduler::leave_ensembles() {
  std::set<std::pair<std::int64_t, std::int64_t>> decided;
  for (const RungRow& row : store_.rungs()) {
    if (!row.advanced) decided.insert({row.number, row.replicate});
  }
  std::map<std::int64_t, std::vector<Leaving>> leaving;
  std::vector<Row> changed;
  for (Row& row : rows_) {
    const bool leaves =
        row.ensemble >= 0 && !row.left && row.status == Status::done && decided.contains({row.number, row.replicate});
    if (!leaves) continue;
    const std::string name = sweep_.spec().name + "-" + trial_name(row.number, row.replicate);
    leaving[row.ensemble].push_back({row.member, name, row.config, folder_.path() / row.run_folder});
    row.left = true;
    changed.push_back(row);
  }
  for (const auto& [ensemble, members] : leaving) {
    leave_run_folders(folder_.path() / ensemble_folder(ensemble), members);
  }
  if (!changed.empty()) store_.decide({}, changed);
}

// Steps that are planned from here on.
std::int64_t Scheduler::steps_left() const {
  std::int64_t sum = sweep_.spec().replicates *
                     sweep::steps_of(plan_.programs.front().rungs, std::ssize(plan_.trials), sweep_.spec().factor);
  for (const Row& row : rows_) sum -= row.steps;
  return std::max<std::int64_t>(sum, 0);
}

std::vector<RunningTrial> Scheduler::running_trials() {
  std::vector<RunningTrial> trials;
  for (const auto& [number, job] : running_) {
    LiveMetrics& live = live_.try_emplace(number, folder_of(job), sweep_.spec().metric).first->second;
    live.update();
    for (const std::size_t i : job.rows) {
      const Row& row = rows_[i];
      const LiveMetrics::Member member = live.member(job.ensemble ? row.member : 0);
      RunningTrial trial;
      trial.row = &row;
      trial.step = std::max(live.step(), row.steps);
      trial.steps = program(i).rungs[static_cast<std::size_t>(row.rung)];
      trial.epoch = live.epoch();
      trial.loss = member.loss;
      trial.value = member.value;
      trials.push_back(trial);
    }
  }
  std::sort(trials.begin(), trials.end(),
            [](const RunningTrial& a, const RunningTrial& b) { return std::less<>()(a.row, b.row); });
  return trials;
}

std::optional<double> Scheduler::seconds_left() {
  const Mark now{Clock::now(), progress_.steps};
  if (now.steps > 0 && (!last_steps_ || now.steps != last_steps_->steps)) last_steps_ = now;
  if (!first_steps_) first_steps_ = last_steps_;
  if (!last_steps_ || last_steps_->steps <= first_steps_->steps) return std::nullopt;
  const auto seconds = [](Clock::duration time) { return std::chrono::duration<double>(time).count(); };
  const double rate =
      seconds(last_steps_->time - first_steps_->time) / static_cast<double>(last_steps_->steps - first_steps_->steps);
  const auto left = static_cast<double>(progress_.all_steps - last_steps_->steps);
  return std::max(rate * left - seconds(now.time - last_steps_->time), 0.0);
}

void Scheduler::tell(const Row* ended) {
  if (!options_.told) return;
  told_ = Clock::now();
  progress_.waiting = progress_.running = progress_.done = progress_.failed = 0;
  // Of the trials that came furthest, as in the final table.
  std::int64_t furthest = 0;
  for (const Row& row : rows_) {
    if (row.value && row.status == Status::done) furthest = std::max(furthest, row.rung);
  }
  std::map<std::int64_t, std::vector<std::optional<double>>> values;
  for (const Row& row : rows_) {
    progress_.waiting += row.status == Status::waiting || row.status == Status::stopped ? 1 : 0;
    progress_.running += row.status == Status::running ? 1 : 0;
    progress_.done += row.status == Status::done ? 1 : 0;
    progress_.failed += row.status == Status::failed ? 1 : 0;
    const bool counts = row.rung == furthest && row.status == Status::done;
    values[row.number].push_back(counts ? row.value : std::nullopt);
  }
  std::vector<Score> scores;
  scores.reserve(values.size());
  for (const auto& [number, one] : values) scores.push_back(score_of(number, one));
  rank(scores, sweep_.spec().mode);
  progress_.best = scores.front().value ? std::optional(scores.front()) : std::nullopt;
  progress_.trials = running_trials();
  progress_.steps = steps_ended_;
  for (const RunningTrial& trial : progress_.trials) progress_.steps += trial.step - trial.row->steps;
  progress_.seconds_left = seconds_left();
  progress_.ended = ended;
  progress_.together = ended == nullptr ? 1 : ensemble_size(*ended, rows_);
  options_.told(progress_);
  progress_.note.clear();
}

// The sweep cannot go on: its runs end with checkpoints, and --resume finds them.
void Scheduler::stop_all() noexcept {
  try {
    runners_.stop();
    while (!running_.empty()) {
      if (const std::optional<Exit> exit = runners_.wait(1)) running_.erase(exit->job);
    }
  } catch (...) {
    running_.clear();
  }
}

}  // namespace pmaptrain::sweep
