// A run that is stopped, that a guard or early stopping ended, or whose checkpoint is damaged, continues to the same
// end as one without a stop, and says the same again where it does not continue.
#include <atomic>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "core/base/clock.h"
#include "core/run/files/file_system.h"
#include "core/setup/make_setup.h"
#include "core/spec/load.h"
#include "core/train/session.h"
#include "tests/catch.h"
#include "tests/train/long_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using nlohmann::json;
using test::contains;
using test::read_text;
using tests::Finished;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t all_steps = 103;  // no multiple of any interval

// Does something before the n-th write to a file.
class BeforeWrite : public run::FileSystem {
 public:
  BeforeWrite(int number, std::function<void()> act) : number_(number), act_(std::move(act)) {}
  ssize_t write(int fd, std::span<const std::byte> bytes) override {
    if (++writes == number_) act_();
    return run::FileSystem::write(fd, bytes);
  }
  std::atomic<int> writes = 0;

 private:
  const int number_;
  const std::function<void()> act_;
};

// The lines of metrics.jsonl with this event and step.
int lines_about(const std::string& run, const std::string& event, std::int64_t step) {
  std::istringstream lines(read_text(fs::path(run) / "metrics.jsonl"));
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    const json object = json::parse(line);
    count += object["event"] == event && object["step"] == step ? 1 : 0;
  }
  return count;
}

// Ends the run in `name`, which a stop is to leave as if there had been none; then it is finished.
void check_end(const LongRun& place, const Kept& whole, const std::string& name) {
  place.complete(name, {"--resume", "--workers", "1"});
  CHECK(differences(whole, place.kept(name)) == "");
  const std::string before = test::listing(place.path(name));
  place.complete(name, {"--resume"});
  CHECK(test::listing(place.path(name)) == before);
}

}  // namespace

TEST_CASE("a run that a signal stops at any moment continues to the same bits", "[train]") {
  const LongRun place(45);
  place.complete("whole");
  const Kept whole = place.kept("whole");
  setup::Setup setup = setup::make_setup(spec::load(place.config(), {}));
  setup.contents = input::contents_of(setup.loaded);
  const auto train_until = [&](BeforeWrite& file_system, const std::atomic<int>& stop, const std::string& name) {
    const run::InstalledFileSystem installed(file_system);
    train::SessionOptions options;
    options.run_dir = place.path(name);
    options.stop = &stop;
    return train::train(setup, options, {});
  };
  std::atomic<int> stop = 0;
  BeforeWrite counting(0, [] {});
  train_until(counting, stop, "counted");
  constexpr std::int64_t last_kept = 42;
  int stopped = 0;
  for (int number = 1; number <= counting.writes; number += 13) {
    INFO("before write " << number << " of " << counting.writes);
    const std::string name = "run" + std::to_string(number);
    stop = 0;
    BeforeWrite stopping(number, [&] { stop = SIGTERM; });
    const run::Ended ended = train_until(stopping, stop, name);
    // The checkpoint of a later stop would be one of the two that are kept.
    if (ended.steps > last_kept) continue;
    ++stopped;
    CHECK(ended.exit_status == 128 + SIGTERM);
    CHECK(lines_about(place.path(name), "step", ended.steps) == 1);
    check_end(place, whole, name);
  }
  CHECK(stopped > 10);
}

TEST_CASE("a run that --max-steps stops continues to the same bits, without the lines of its stops", "[train]") {
  const LongRun place(all_steps);
  place.complete("whole");
  // Also at the end of an epoch, at an evaluation and where nothing is due.
  for (const int stop : {41, 60, 70, 89}) {
    INFO(stop);
    place.complete("run", {"--resume", "--max-steps", std::to_string(stop)});
    CHECK(lines_about(place.path("run"), "step", stop) == 1);
    CHECK(lines_about(place.path("run"), "epoch", stop) == 1);
    CHECK(lines_about(place.path("run"), "eval", stop) == 2);  // validation and test
  }
  check_end(place, place.kept("whole"), "run");
}

TEST_CASE("a run that --max-time stops, also before the first step of a process, continues to the same bits",
          "[train]") {
  const LongRun place(all_steps);
  place.complete("whole");
  // The time counts from the start of the process: it is over after the next full second, during which one write of
  // the run waits.
  const double time = std::floor(seconds_since_process_began()) + 1;
  const std::string max_time = std::to_string(static_cast<int>(time)) + " seconds";
  const auto pause = [time] {
    while (seconds_since_process_began() < time + 0.05) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  BeforeWrite waiting(60, pause);
  {
    const run::InstalledFileSystem installed(waiting);
    place.complete("run", {"--max-time", max_time});
  }
  const json summary = json::parse(read_text(place.path("run") + "/summary.json"));
  CHECK(summary["reason"] == "max_time");
  const std::int64_t stop = summary["steps"];
  CHECK(stop < all_steps);
  CHECK(lines_about(place.path("run"), "step", stop) == 1);
  const std::string before = place.kept("run").at("summary.json");
  pause();
  place.complete("run", {"--resume", "--max-time", max_time});
  CHECK(place.kept("run").at("summary.json") == before);
  CHECK(lines_about(place.path("run"), "step", stop) == 1);
  check_end(place, place.kept("whole"), "run");
}

TEST_CASE("a run that a guard or early stopping ended says so again, and continues without it to the same bits",
          "[train]") {
  const LongRun place(45);
  // So that the step that ends the run has a line, and an evaluation that is no improvement.
  const auto with = [](std::vector<std::string> more) {
    more.insert(more.end(), {"--set", "train.log_every=1 step", "--set", "train.eval_every=1 step"});
    return more;
  };
  place.complete("whole", with({}));
  struct Case {
    std::string set, advice;
    int status;
  };
  for (const Case& one :
       {Case{"train.on_nonfinite=halt", "train.on_nonfinite: skip continues it", 5},
        Case{"train.loss_spike.action=halt", "train.loss_spike.action: warn continues it", 5},
        Case{"train.early_stopping.patience=1", "a larger train.early_stopping.patience continues it", 0}}) {
    INFO(one.set);
    fs::remove_all(place.path("run"));
    const Finished ended = place.run("run", with({"--set", one.set}));
    CHECK(ended.status == one.status);
    const std::string before = test::listing(place.path("run"));
    const Finished again = tests::call_with_display({"run", place.path("run"), "--resume"});
    CHECK(again.status == one.status);
    CHECK(contains(again.err, "'" + place.path("run") + "' is finished: "));
    CHECK(contains(again.err, "; " + one.advice + "\n"));
    CHECK(again.out == ended.out);
    CHECK(test::listing(place.path("run")) == before);
    place.complete("run", with({"--resume"}));
    CHECK(differences(place.kept("whole"), place.kept("run")) == "");
  }
}

TEST_CASE("a damaged checkpoint is told and the one before is used; without a whole one the exit status is 3",
          "[train]") {
  const LongRun place(30);
  place.complete("run");
  const Kept whole = place.kept("run");
  const fs::path checkpoints = place.path("run") + "/checkpoints";
  const auto damage = [&](const std::string& file) {
    fs::resize_file(checkpoints / file, fs::file_size(checkpoints / file) - 1);
  };
  damage("step-00000030/ema.safetensors");
  const Finished result = place.run("run", {"--resume"});
  CHECK(result.status == 0);
  CHECK(contains(result.err, "warning: '" + (checkpoints / "step-00000030/ema.safetensors").string() +
                                 "' is damaged: it does not have the checksum that state.json gives"));
  CHECK(differences(whole, place.kept("run")) == "");

  for (const auto& entry : fs::directory_iterator(checkpoints)) {
    if (!entry.is_symlink()) damage(entry.path().filename().string() + "/state.json");
  }
  const std::string before = test::listing(place.path("run"));
  const Finished refused = place.run("run", {"--resume"});
  CHECK(refused.status == 3);
  CHECK(contains(refused.err, "error: no checkpoint of '" + place.path("run") + "' is whole: "));
  CHECK(contains(refused.err, "help: --overwrite begins the run anew"));
  CHECK(test::listing(place.path("run")) == before);
}

TEST_CASE("--resume and --overwrite together are refused", "[train]") {
  const LongRun place(30);
  const Finished result = place.run("run", {"--resume", "--overwrite"});
  CHECK(result.status == 2);
  CHECK(contains(result.err, "--overwrite and --resume were both given"));
  CHECK(contains(result.err, "--resume continues the run, --overwrite replaces it"));
  CHECK_FALSE(fs::exists(place.path("run")));
}
