// Whenever a run is killed or stopped, it continues to the same end: the same bits in its checkpoints, the same lines,
// the same summary. PMAPTRAIN_KILLS says how often it is killed; 20 without it.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "tests/app/long_run.h"
#include "tests/app/process.h"
#include "tests/app/trace.h"
#include "tests/catch.h"

using namespace pmaptrain::tests;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr int all_steps = 603;  // no multiple of any interval

int wanted_kills() {
  const char* const given = std::getenv("PMAPTRAIN_KILLS");
  return given != nullptr ? std::atoi(given) : 20;
}

void pause_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

double between(std::mt19937& random, double least, double most) {
  return least + (most - least) * static_cast<double>(random()) / 4294967296.0;
}

std::string some_workers(std::mt19937& random) { return std::to_string(1 + random() % 4); }

// The lines of metrics.jsonl with this event and step.
int lines_about(const std::string& run, const std::string& event, int step) {
  std::istringstream lines(read_text(fs::path(run) / "metrics.jsonl"));
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    const json object = json::parse(line);
    count += object["event"] == event && object["step"] == step ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("a run that is killed at any moment, again and again, continues to the same bits", "[app]") {
  const LongRun run(all_steps);
  seconds_of(run, "first");  // reads the program from the disk
  double usual = seconds_of(run, "whole");
  const Kept whole = run.kept("whole");
  REQUIRE(json::parse(whole.at("summary.json"))["steps_skipped"] > 0);
  REQUIRE(json::parse(whole.at("summary.json"))["best"]["step"] < all_steps);
  const unsigned seed = 13;
  std::mt19937 random(seed);
  int kills = 0, folders = 0;
  while (kills < wanted_kills()) {
    ++folders;
    REQUIRE(folders <= 20 + 5 * wanted_kills());
    const std::string name = "run" + std::to_string(folders);
    std::ostringstream told;
    told << "seed " << seed << ", folder " << folders << ", killed after";
    const auto times = static_cast<int>(1 + random() % 4);
    for (int i = 0; i < times && kills < wanted_kills(); ++i) {
      const double life = between(random, 0, 1.05 * usual);
      Process process(run.command(name, {"--resume", "--workers", some_workers(random)}));
      pause_for(life);
      process.send(SIGKILL);
      const Finished result = process.wait();
      const bool killed = result.signal == SIGKILL;
      kills += killed ? 1 : 0;
      told << " " << life << (killed ? "" : " (ended)");
      INFO(told.str() << "\n" << result.err);
      if (!killed) {
        CHECK(result.status == 0);
        if (i == 0) usual = std::min(usual, life);  // other programs may have slowed the first one down
      }
    }
    INFO(told.str());
    const Finished result = run_binary(run.command(name, {"--resume", "--workers", some_workers(random)}));
    INFO(result.err);
    REQUIRE(result.status == 0);
    REQUIRE(differences(whole, run.kept(name)) == "");
    fs::remove_all(run.path(name));
  }
}

TEST_CASE("a run that is killed between any two of its writes continues to the same bits", "[app]") {
  const bool ensemble = GENERATE(false, true);
  const LongRun run(45, ensemble ? three_members() : std::vector<std::string>());
  seconds_of(run, "whole");
  const Kept whole = run.kept("whole");
  if (ensemble) {
    const json summary = json::parse(whole.at("summary.json"));
    INFO(summary.dump(1));
    REQUIRE(summary["members"][1]["finished"] == "early_stopping");
    REQUIRE(summary["members"][1]["steps"] < 37);
    REQUIRE(summary["members"][0]["finished"].is_null());
    REQUIRE(summary["best"][1]["step"] != summary["best"][0]["step"]);
  }
  REQUIRE(run_binary(run.command("begun", {"--max-steps", "37"})).status == 0);
  // The process that begins the run, or the one that continues it at step 37, is killed after so many writes.
  const auto start = [&](const std::string& trace, bool resumes, int killed_after) {
    constexpr auto all = fs::copy_options::recursive | fs::copy_options::copy_symlinks;
    fs::remove_all(run.path("run"));
    if (resumes) fs::copy(run.path("begun"), run.path("run"), all);
    std::vector<std::string> command = run.command("run", {"--resume"});
    command.insert(command.begin(), binary_path());
    return Process(traced(command, run.path(trace), fs::path(run.path("run")).parent_path().string(), killed_after))
        .wait();
  };
  for (const bool resumes : {false, true}) {
    const std::string trace = resumes ? "resuming" : "beginning";
    REQUIRE(start(trace, resumes, 0).status == 0);
    const auto writes = static_cast<int>(read_trace(run.path(trace)).size());
    REQUIRE(writes > 50);
    int kills = 0;
    for (int after = 1; after <= writes; ++after) {
      // Every other one of the beginning and of the end, and a few of what lies between.
      const bool at_an_end = after < 20 || after > writes - 40;
      const bool chosen = at_an_end ? after % 2 == 1 : after % (writes / 8) == 0;
      if (!chosen) continue;
      INFO(trace << ", killed after " << after << " of about " << writes << " writes");
      kills += start("trace", resumes, after).signal == SIGKILL ? 1 : 0;
      const Finished result = run_binary(run.command("run", {"--resume"}));
      INFO(result.err);
      REQUIRE(result.status == 0);
      REQUIRE(differences(whole, run.kept("run")) == "");
    }
    CHECK(kills > 30);
  }
}

TEST_CASE("a run that is stopped continues to the same bits, without the lines of its stops", "[app]") {
  const LongRun run(all_steps);
  const double usual = seconds_of(run, "whole");
  const Kept whole = run.kept("whole");
  // Ends the run in `name`, which a stop is to leave as if there had been none.
  const auto check_end = [&](const std::string& name) {
    REQUIRE(run_binary(run.command(name, {"--resume", "--workers", "1"})).status == 0);
    CHECK(differences(whole, run.kept(name)) == "");
    const std::string before = pmaptrain::test::listing(run.path(name));
    CHECK(run_binary(run.command(name, {"--resume"})).status == 0);
    CHECK(pmaptrain::test::listing(run.path(name)) == before);
  };

  SECTION("by SIGTERM") {
    std::mt19937 random(14);
    for (int i = 0; i < 3; ++i) {
      const std::string name = "run" + std::to_string(i);
      for (int stop = 0; stop < 2; ++stop) {
        const double life = between(random, 0, usual);
        INFO(i << ": " << life);
        Process process(run.command(name, {"--resume", "--workers", some_workers(random)}));
        pause_for(life);
        process.send(SIGTERM);
        const Finished result = process.wait();
        CHECK((result.signal == SIGTERM || result.status == 0));
      }
      check_end(name);
    }
  }
  SECTION("by --max-steps, also at the end of an epoch, at an evaluation and where nothing is due") {
    for (const int stop : {41, 60, 70, 299}) {
      INFO(stop);
      const Finished result = run_binary(run.command("run", {"--resume", "--max-steps", std::to_string(stop)}));
      CHECK(result.status == 0);
      CHECK(lines_about(run.path("run"), "step", stop) == 1);
      CHECK(lines_about(run.path("run"), "epoch", stop) == 1);
      CHECK(lines_about(run.path("run"), "eval", stop) == 2);  // validation and test
    }
    check_end("run");
  }
  SECTION("by --max-time, also before the first step of a process") {
    const std::string metrics = run.path("run") + "/metrics.jsonl";
    Process process(run.command("run", {"--max-time", "1 second"}));
    REQUIRE(wait_until([&] { return fs::exists(metrics) && fs::file_size(metrics) > 1000; }));
    process.send(SIGSTOP);
    pause_for(1.0);
    process.send(SIGCONT);
    CHECK(process.wait().status == 0);
    const json summary = json::parse(read_text(run.path("run") + "/summary.json"));
    CHECK(summary["reason"] == "max_time");
    const int stop = summary["steps"];
    CHECK(stop < all_steps);
    CHECK(lines_about(run.path("run"), "step", stop) == 1);
    const std::string before = run.kept("run").at("summary.json");
    Process late(run.command("run", {"--resume", "--max-time", "1 second"}));
    late.send(SIGSTOP);
    pause_for(1.1);
    late.send(SIGCONT);
    const Finished again = late.wait();
    INFO(again.err);
    CHECK(again.status == 0);
    CHECK(run.kept("run").at("summary.json") == before);
    CHECK(lines_about(run.path("run"), "step", stop) == 1);
    check_end("run");
  }
}

TEST_CASE("a run that a guard or early stopping ended says so again, and continues without it to the same bits",
          "[app]") {
  const LongRun run(45);
  // So that the step that ends the run has a line, and an evaluation that is no improvement.
  const std::vector<std::string> often = {"--set", "train.log_every=1 step", "--set", "train.eval_every=1 step"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), often.begin(), often.end());
    return more;
  };
  REQUIRE(run_binary(run.command("whole", often)).status == 0);
  struct Case {
    std::string set, advice;
    int status;
  };
  for (const Case& one :
       {Case{"train.on_nonfinite=halt", "train.on_nonfinite: skip continues it", 5},
        Case{"train.loss_spike.action=halt", "train.loss_spike.action: warn continues it", 5},
        Case{"train.early_stopping.patience=1", "a larger train.early_stopping.patience continues it", 0}}) {
    INFO(one.set);
    fs::remove_all(run.path("run"));
    const Finished ended = run_binary(run.command("run", with({"--set", one.set})));
    CHECK(ended.status == one.status);
    const std::string before = pmaptrain::test::listing(run.path("run"));
    const Finished again = run_binary({"run", run.path("run"), "--resume"});
    CHECK(again.status == one.status);
    CHECK(contains(again.err, "'" + run.path("run") + "' is finished: "));
    CHECK(contains(again.err, "; " + one.advice + "\n"));
    CHECK(again.out == ended.out);
    CHECK(pmaptrain::test::listing(run.path("run")) == before);
    REQUIRE(run_binary(run.command("run", with({"--resume"}))).status == 0);
    CHECK(differences(run.kept("whole"), run.kept("run")) == "");
  }
}

TEST_CASE("a damaged checkpoint is told and the one before is used; without a whole one the exit status is 3",
          "[app]") {
  const LongRun run(30);
  seconds_of(run, "run");
  const Kept whole = run.kept("run");
  const fs::path checkpoints = run.path("run") + "/checkpoints";
  const auto damage = [&](const std::string& file) {
    fs::resize_file(checkpoints / file, fs::file_size(checkpoints / file) - 1);
  };
  damage("step-00000030/ema.safetensors");
  const Finished result = run_binary(run.command("run", {"--resume"}));
  CHECK(result.status == 0);
  CHECK(contains(result.err, "warning: '" + (checkpoints / "step-00000030/ema.safetensors").string() +
                                 "' is damaged: it does not have the checksum that state.json gives"));
  CHECK(differences(whole, run.kept("run")) == "");

  for (const auto& entry : fs::directory_iterator(checkpoints)) {
    if (!entry.is_symlink()) damage(entry.path().filename().string() + "/state.json");
  }
  const std::string before = pmaptrain::test::listing(run.path("run"));
  const Finished refused = run_binary(run.command("run", {"--resume"}));
  CHECK(refused.status == 3);
  CHECK(contains(refused.err, "error: no checkpoint of '" + run.path("run") + "' is whole: "));
  CHECK(contains(refused.err, "help: --overwrite begins the run anew"));
  CHECK(pmaptrain::test::listing(run.path("run")) == before);
}

TEST_CASE("--resume and --overwrite together are refused", "[app]") {
  const LongRun run(30);
  const Finished result = run_binary(run.command("run", {"--resume", "--overwrite"}));
  CHECK(result.status == 2);
  CHECK(contains(result.err, "--overwrite and --resume were both given"));
  CHECK(contains(result.err, "--resume continues the run, --overwrite replaces it"));
  CHECK_FALSE(fs::exists(run.path("run")));
}
