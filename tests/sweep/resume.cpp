// Sweeps that go on: what they keep, what they take, and what they refuse.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "core/sweep/folder.h"
#include "core/sweep/run.h"
#include "core/sweep/store.h"
#include "tests/app/call.h"
#include "tests/catch.h"
#include "tests/sweep/trials.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using nlohmann::json;
using test::contains;
namespace fs = std::filesystem;

TEST_CASE("a resumed sweep waits for one that still holds the folder's lock", "[sweep]") {
  const SweepFolder folder;
  CalledTrials trials;
  folder.run(folder.sweep(rates), "sweep", trials);
  std::optional<sweep::SweepFolder> held = sweep::SweepFolder::claim(folder.path("sweep"), {true, false});
  std::thread dying([&held] {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    held.reset();
  });
  CHECK(folder.run(folder.sweep(rates), "sweep", trials, true).size() == 4);
  dying.join();
}

TEST_CASE("a resumed sweep keeps the numbers of trials whose parameters and choices are in another order", "[sweep]") {
  const SweepFolder folder;
  CalledTrials trials;
  const auto before = folder.run(
      folder.sweep("parameters: {optimizer.learning_rate: {choice: [0.1, 0.2]}, data.batch_size: {choice: [8, 16]}}\n"),
      "sweep", trials);
  const auto after = folder.run(
      folder.sweep("parameters: {data.batch_size: {choice: [16, 8]}, optimizer.learning_rate: {choice: [0.2, 0.1]}}\n"),
      "sweep", trials, true);
  CHECK(trials.calls == 4);
  REQUIRE(after.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(after[i].number == before[i].number);
    CHECK(after[i].parameters == before[i].parameters);
    CHECK(after[i].value == before[i].value);
  }
}

TEST_CASE("a sweep that began with a mode against its metric goes on with a warning, and none begins so", "[sweep]") {
  const SweepFolder folder;
  const std::string doubtful = rates + "metric: loss\nmode: max\n";
  const std::string base = test::read_text(folder.path("base.yaml"));
  std::string stating = base;
  stating.insert(stating.find("duration: 4 epochs"), "checkpoint: {best: {metric: loss, mode: max}}, ");
  test::write_text(folder.path("base.yaml"), stating);
  CalledTrials trials;
  folder.run(folder.sweep(doubtful), "begun", trials);
  test::write_text(folder.path("base.yaml"), base);
  const spec::Sweep sweep = folder.sweep(doubtful);
  const std::string message = "mode: max takes the largest loss for the best, and smaller values of it are better";
  CHECK(contains(error_of([&] { folder.run(sweep, "new", trials); }), "error: " + message + "\n"));
  CHECK(contains(error_of([&] { folder.run(sweep, "new", trials, true); }), "error: " + message + "\n"));
  CHECK_FALSE(fs::exists(folder.path("new")));
  sweep::SweepOptions options;
  options.folder = folder.path("begun");
  options.how.resume = true;
  const sweep::Beginning begun = sweep::check_sweep(sweep, options, 2);
  CHECK(begun.continues);
  REQUIRE_FALSE(begun.plan.warnings.empty());  // of best checkpoints there are others
  CHECK(begun.plan.warnings.front() == message + "; the sweep goes on with the mode that it began with");
  CHECK(folder.run(sweep, "begun", trials, true).size() == 4);
}

TEST_CASE("a resumed sweep takes more random trials and a longer choice, and refuses other edits", "[sweep]") {
  const SweepFolder folder;
  const std::string random = "parameters: {optimizer.learning_rate: {uniform: [0.01, 0.2]}}\nsearch: random\n";
  CalledTrials trials;
  const auto first = folder.run(folder.sweep(random + "trials: 2\n"), "random", trials);
  const auto more = folder.run(folder.sweep(random + "trials: 4\n"), "random", trials, true);
  CHECK(trials.calls == 4);
  CHECK(more[0].value == first[0].value);
  CHECK(more[1].parameters == first[1].parameters);
  CHECK(more.size() == 4);

  CalledTrials grid;
  const std::string choice = "parameters: {optimizer.learning_rate: {choice: ";
  folder.run(folder.sweep(choice + "[0.1, 0.2]}}\n"), "grid", grid);
  const auto longer = folder.run(folder.sweep(choice + "[0.05, 0.1, 0.2]}}\n"), "grid", grid, true);
  CHECK(grid.calls == 3);
  CHECK(longer[2].parameters == R"({"optimizer.learning_rate":0.05})");
  const auto refusal = [&](const std::string& keys) {
    const spec::Sweep sweep = folder.sweep(keys);
    const std::string of_run = error_of([&] { folder.run(sweep, "grid", grid, true); });
    sweep::SweepOptions options;
    options.folder = folder.path("grid");
    options.how.resume = true;
    CHECK(error_of([&] { sweep::check_sweep(sweep, options, 1); }) == of_run);
    return of_run;
  };
  CHECK(refusal(choice + "[0.05, 0.1]}}\n") ==
        folder.path("sweep.yaml") +
            ":3:39: error: optimizer.learning_rate is {choice: [0.05, 0.1]}, and was {choice: [0.05, 0.1, 0.2]}\n"
            "    3 | parameters: {optimizer.learning_rate: {choice: [0.05, 0.1]}}\n"
            "      |                                       ^~~~~~~~~~~~~~~~~~~~~\n"
            "  help: --resume takes more trials of a random search, or a longer choice of a grid; --overwrite begins "
            "anew, and --dir DIR keeps both\n");
  CHECK(contains(refusal(choice + "[0.05, 0.1, 0.2]}}\nset: {optimizer.sgd.momentum: 0.9}\n"),
                 "error: optimizer.sgd.momentum is 0.9, and was 0.5 in trial 2"));
  CHECK(contains(refusal(choice + "[0.05, 0.1, 0.2]}}\nvalue: last\n"),
                 "error: the sweep's value is last, and was best"));
  CHECK(contains(error_of([&] { folder.run(folder.sweep(rates), "grid", grid); }), "error: there is a sweep in '"));
  CHECK(grid.calls == 3);
}

TEST_CASE("data that changed between two processes of a sweep is noticed", "[sweep]") {
  const SweepFolder folder;
  const auto write = [&](int first) {
    std::string csv = "x,y\n";
    for (int i = 0; i < 40; ++i) csv += std::to_string((i + first) % 7) + "," + std::to_string(i % 5) + "\n";
    test::write_text(folder.path("table.csv"), csv);
  };
  write(0);
  const std::string keys =
      "parameters: {optimizer.learning_rate: {choice: [0.01, 0.02]}}\n"
      "set: {data.source: {csv: {train: table.csv, target: y}}}\n";
  CalledTrials trials;
  folder.run(folder.sweep(keys), "sweep", trials);
  write(0);  // another time of change, and the same bytes
  folder.run(folder.sweep(keys), "sweep", trials, true);
  write(1);
  const std::string said = error_of([&] { folder.run(folder.sweep(keys), "sweep", trials, true); });
  CHECK(contains(said, "error: the sweep's data has changed: " + folder.path("table.csv")));
}

TEST_CASE("a trial whose folder was removed between rungs begins anew, and a finished one keeps its value", "[sweep]") {
  const SweepFolder folder;
  CalledTrials trials;
  const std::string expected = results_of(folder.path("whole"), folder.run(folder.sweep(halved), "whole", trials));
  CalledTrials until;
  until.instead = [&](std::size_t, const std::vector<std::string>& arguments) -> std::optional<sweep::Exit> {
    const auto at = std::find(arguments.begin(), arguments.end(), "--max-steps");
    if (at == arguments.end() || *(at + 1) != "8") throw Killed{};
    return std::nullopt;
  };
  CHECK_THROWS_AS(folder.run(folder.sweep(halved), "d", until), Killed);
  for (const sweep::Row& row : sweep::Store(folder.path("d"), sweep::Store::Access::read).rows()) {
    if (row.rung == 1) fs::remove_all(fs::path(folder.path("d")) / row.run_folder);
  }
  CalledTrials rest;
  CHECK(results_of(folder.path("d"), folder.run(folder.sweep(halved), "d", rest, true)) == expected);

  fs::remove_all(folder.path("d/trials/0000"));
  sweep::SweepOptions options;
  options.folder = folder.path("d");
  options.how.resume = true;
  std::string told;
  options.told = [&told](const sweep::Progress& progress) { told += progress.note; };
  sweep::Runners runners(rest, {.cores = 2});
  const auto rows = sweep::run_sweep(folder.sweep(halved), options, runners);
  CHECK(rows[0].value);
  CHECK(told == "the run folders of these trials are gone; their values stay: 0000");
}

TEST_CASE("a trial that ran alone before is not taken into an ensemble", "[sweep]") {
  const SweepFolder folder;
  CalledTrials alone;
  alone.instead = [&](std::size_t, const std::vector<std::string>& arguments) -> std::optional<sweep::Exit> {
    if (alone.calls < 2) return std::nullopt;
    std::vector<std::string> some = arguments;
    some.insert(some.end(), {"--max-steps", "3"});
    tests::call(some);
    throw Killed{};
  };
  CHECK_THROWS_AS(folder.run(folder.sweep(rates), "d", alone), Killed);
  CalledTrials whole, rest;
  const std::string expected = results_of(folder.path("whole"), folder.run(folder.sweep(rates), "whole", whole));
  const auto rows = folder.run(folder.sweep(rates, true), "d", rest, true);
  CHECK(results_of(folder.path("d"), rows) == expected);
  CHECK(rows[0].ensemble == -1);
  CHECK(rows[1].ensemble == -1);
  CHECK(rows[3].ensemble == 0);
  for (const sweep::Row& row : rows) {
    const json summary = json::parse(test::read_text(fs::path(folder.path("d")) / row.run_folder / "summary.json"));
    CHECK(summary["status"] == "done");
    CHECK(summary["steps"] == row.steps);
  }
}

TEST_CASE("a resumed sweep refuses what gives trials another length, and keeps the configs of trained ones",
          "[sweep]") {
  const SweepFolder folder;
  const std::string random = "parameters: {optimizer.learning_rate: {uniform: [0.01, 0.2]}}\nsearch: random\n";
  CalledTrials trials;
  const auto before = folder.run(folder.sweep(random + "trials: 2\n"), "d", trials);
  for (const std::string key : {"train.duration: 8 epochs", "train.eval_every: 2 epochs",
                                "train.early_stopping: {metric: loss, patience: 1}"}) {
    const std::string said =
        error_of([&] { folder.run(folder.sweep(random + "trials: 4\nset: {" + key + "}\n"), "d", trials, true); });
    CHECK(contains(said, "error: " + key.substr(0, key.find(':'))));
    CHECK(contains(said, "--overwrite begins anew, and --dir DIR keeps both"));
  }
  const auto more =
      folder.run(folder.sweep(random + "trials: 3\nset: {train.log_every: 1 epoch}\n"), "d", trials, true);
  CHECK(more[0].config == before[0].config);
  CHECK(contains(more[2].config, "log_every: 1 epoch"));
  // The folder's sweep.yaml is that of all its trials.
  const spec::Sweep again = spec::Sweep::load(folder.path("d"), {});
  CHECK(again.spec().trials == 3);
  CHECK(again.spec().name == "sweep");
  folder.run(again, "d", trials, true);
  CHECK(trials.calls == 3);
}
