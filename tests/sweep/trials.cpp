#include "tests/sweep/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <mutex>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/sweep/table.h"
#include "tests/app/call.h"

namespace pmaptrain::testing {

const std::string rates = "parameters: {optimizer.learning_rate: {choice: [0.01, 0.05, 0.1, 0.2]}}\n";
const std::string halved =
    "parameters: {optimizer.learning_rate: {log_uniform: [0.001, 0.3]}, optimizer.sgd.momentum: {choice: [0.0, 0.9]}}\n"
    "search: {successive_halving: {min: 1 epoch, factor: 2}}\ntrials: 8\n";

void CalledTrials::start(std::size_t job, const std::vector<std::string>& arguments) {
  if (starts) starts();
  started_.push_back({job, arguments});
  most_at_once = std::max<std::int64_t>(most_at_once, std::ssize(started_));
}

std::optional<sweep::Exit> CalledTrials::wait(double /*seconds*/) {
  if (started_.empty()) return std::nullopt;
  if (stopped_) {
    const std::size_t job = started_.back().job;
    started_.pop_back();
    return sweep::Exit{job, 0, SIGTERM, "", ""};
  }
  const std::size_t next = choose(started_.size()) % started_.size();
  const Started one = started_[next];
  started_.erase(started_.begin() + static_cast<std::ptrdiff_t>(next));
  ++calls;
  if (instead) {
    try {
      if (auto exit = instead(one.job, one.arguments)) {
        exit->job = one.job;
        return exit;
      }
    } catch (const Killed&) {
      started_.push_back(one);  // it has not ended
      throw;
    }
  }
  // Runs of processes that are threads of this one: they handle signals, one at a time.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const tests::Finished finished = tests::call(one.arguments);
  return sweep::Exit{one.job, finished.status, 0, finished.out, finished.err};
}

SweepFolder::SweepFolder() {
  folder_.write("base.yaml",
                "data:\n"
                "  source: {synthetic_linear: {features: 3, examples_per_device: 40, noise: 0.1}}\n"
                "  validation: 0.2\n"
                "  batch_size: 8\n"
                "mesh: {axes: {devices: 2}}\n"
                "model: {layers: [dense: 1]}\n"
                "loss: mean_squared_error\n"
                "optimizer: {sgd: {momentum: 0.5}, learning_rate: 0.1}\n"
                "train: {duration: 4 epochs, log_every: never, eval_every: 1 epoch}\n");
}

spec::Sweep SweepFolder::sweep(const std::string& keys, bool vectorize) const {
  const std::string begin = vectorize ? "base: base.yaml\n" : "base: base.yaml\nvectorize: false\n";
  return spec::Sweep::load(folder_.write("sweep.yaml", begin + keys), {});
}

std::vector<sweep::Row> SweepFolder::run(const spec::Sweep& sweep, const std::string& name, CalledTrials& trials,
                                         bool resume, int cores) const {
  sweep::SweepOptions options;
  options.folder = folder_ / name;
  options.how.resume = resume;
  sweep::Runners runners(trials, {.cores = cores});
  return sweep::run_sweep(sweep, options, runners);
}

std::string values_of(const std::vector<sweep::Row>& rows) {
  std::string text;
  for (const sweep::Row& row : rows) {
    text += sweep::trial_name(row.number, row.replicate) + " " + sweep::to_string(row.status) + " " +
            (row.value ? exact(*row.value) : "none") + " " + std::to_string(row.steps) + "\n";
  }
  return text;
}

std::string results_of(const std::string& folder, const std::vector<sweep::Row>& rows) {
  std::string text = values_of(rows);
  for (const sweep::Row& row : rows) {
    text += test::read_text(std::filesystem::path(folder) / row.run_folder / "checkpoints/last/params.safetensors");
  }
  for (const sweep::RungRow& row : sweep::read_results(folder).rungs) {
    text += fmt::format("{} {} {} {}\n", row.rung, row.number, row.steps, row.advanced);
  }
  return text;
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace pmaptrain::testing
