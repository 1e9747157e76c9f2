#include "core/sweep/run.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>

#include "core/base/text.h"
#include "core/spec/load.h"
#include "core/sweep/summary.h"
#include "core/sweep/table.h"
#include "tests/app/call.h"
#include "tests/catch.h"
#include "tests/slice.h"
#include "tests/sweep/trials.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using nlohmann::json;
using test::contains;
namespace fs = std::filesystem;

TEST_CASE("a grid runs every combination, and each trial is a run of its own config", "[sweep]") {
  const SweepFolder folder;
  const spec::Sweep sweep = folder.sweep(rates + "replicates: {seed: [3, 4]}\n");
  CalledTrials trials;
  const std::vector<sweep::Row> rows = folder.run(sweep, "grid", trials);
  REQUIRE(rows.size() == 8);
  CHECK(trials.calls == 8);
  std::set<double> values;
  for (const sweep::Row& row : rows) {
    CHECK(row.status == sweep::Status::done);
    REQUIRE(row.value);
    values.insert(*row.value);
    // The same config alone gives the same value.
    const std::string alone = folder.path("alone" + row.run_folder.substr(7));
    const auto finished = tests::call({"run", folder.path("grid/configs/" + row.run_folder.substr(7) + ".yaml"),
                                       "--run-dir", alone, "--json", "--progress", "none"});
    REQUIRE(finished.status == 0);
    CHECK(json::parse(finished.out)["best"]["value"].get<double>() == *row.value);
  }
  CHECK(values.size() == 8);
  const sweep::Results results = sweep::read_results(folder.path("grid"));
  REQUIRE(results.trials.size() == 4);
  CHECK(results.parameters == std::vector<std::string>{"optimizer.learning_rate"});
  const auto& best = results.trials.front();
  CHECK(*best.score.value == (*best.runs[0].value + *best.runs[1].value) / 2);
  CHECK(best.score.spread);
}

TEST_CASE("neither the order in which runs end nor their number at once changes a value", "[sweep]") {
  const SweepFolder folder;
  const spec::Sweep sweep = folder.sweep(halved);
  CalledTrials one_by_one;
  const std::string expected = results_of(folder.path("a"), folder.run(sweep, "a", one_by_one, false, 1));
  CHECK(one_by_one.most_at_once == 1);
  for (const unsigned seed : {1U, 2U, 3U}) {
    CalledTrials trials;
    std::mt19937 random(seed);
    trials.choose = [&random](std::size_t started) { return random() % started; };
    const std::string name = "b" + std::to_string(seed);
    CHECK(results_of(folder.path(name), folder.run(sweep, name, trials, false, 4)) == expected);
    CHECK(trials.most_at_once == 4);
  }
}

TEST_CASE("successive halving trains the better trials on, from their checkpoints, and no others", "[sweep]") {
  const SweepFolder folder;
  CalledTrials trials;
  const std::vector<sweep::Row> rows = folder.run(folder.sweep(halved), "sweep", trials);
  const sweep::Results results = sweep::read_results(folder.path("sweep"));
  std::map<std::int64_t, std::vector<sweep::RungRow>> rungs;
  for (const sweep::RungRow& row : results.rungs) rungs[row.rung].push_back(row);
  REQUIRE(rungs.size() == 3);
  CHECK(rungs[0].size() == 8);
  CHECK(rungs[1].size() == 4);
  CHECK(rungs[2].size() == 2);
  for (const auto& [rung, of_rung] : rungs) {
    double worst_that_advanced = 0;
    for (const sweep::RungRow& row : of_rung) {
      CHECK(row.steps == 8 << rung);  // 8 steps an epoch
      if (row.advanced) worst_that_advanced = std::max(worst_that_advanced, *row.value);
    }
    for (const sweep::RungRow& row : of_rung) {
      if (!row.advanced && rung < 2) CHECK(*row.value >= worst_that_advanced);
    }
  }
  CHECK(trials.calls == 8 + 4 + 2);
  // The best is one of the last rung.
  CHECK(results.trials.front().rung == 2);
}

TEST_CASE("a sweep that is killed at any moment goes on to the same values and parameters", "[sweep]") {
  const bool vectorize = GENERATE(false, true);
  const SweepFolder folder;
  const spec::Sweep sweep = folder.sweep(halved, vectorize);
  CalledTrials undisturbed;
  const std::string expected = results_of(folder.path("whole"), folder.run(sweep, "whole", undisturbed));
  const auto covering = static_cast<std::uint32_t>(4 / test::slices_with_sanitizer(2));
  for (const std::uint32_t seed : test::some_seeds(covering, 200, 40 * test::slices_with_sanitizer(5))) {
    std::mt19937 random(seed);
    const std::string name = "killed" + std::to_string(seed);
    for (auto processes = 1 + random() % 3; processes > 0; --processes) {
      const auto kill = static_cast<std::int64_t>(random() % static_cast<std::size_t>(undisturbed.calls));
      const bool ended = random() % 2 == 0;  // after a run has ended, but before its end is recorded
      CalledTrials trials;
      trials.choose = [&random](std::size_t started) { return random() % started; };
      trials.instead = [&](std::size_t /*job*/,
                           const std::vector<std::string>& arguments) -> std::optional<sweep::Exit> {
        if (trials.calls <= kill) return std::nullopt;
        if (ended) tests::call(arguments);
        throw Killed{};
      };
      try {
        folder.run(sweep, name, trials, true);
      } catch (const Killed&) {
        continue;  // less may be left than the kill waits for
      }
    }
    CalledTrials last;
    const std::vector<sweep::Row> rows = folder.run(sweep, name, last, true);
    INFO("seed " << seed);
    CHECK(results_of(folder.path(name), rows) == expected);
    fs::remove_all(folder.path(name));
  }
}

TEST_CASE("trials as members of ensembles have the bits of runs of their own, and leave their run folders", "[sweep]") {
  const SweepFolder folder;
  CalledTrials alone, together;
  const std::string keys = halved + "replicates: {seed: [0, 7]}\n";
  const auto rows = folder.run(folder.sweep(keys), "alone", alone);
  const std::string expected = results_of(folder.path("alone"), rows);
  CHECK(results_of(folder.path("together"), folder.run(folder.sweep(keys, true), "together", together)) == expected);
  // With and without momentum there are two programs, in each of three rungs at most.
  CHECK(together.calls <= 6);
  CHECK(alone.calls == 2 * (8 + 4 + 2));
  for (const sweep::Row& row : rows) {
    const auto lines = [&](const std::string& name) {
      std::string text;
      std::istringstream file(test::read_text(fs::path(folder.path(name)) / row.run_folder / "metrics.jsonl"));
      for (std::string line; std::getline(file, line);) {
        json document = json::parse(line);
        document.erase("seconds");
        document.erase("examples_per_second");
        text += document.dump() + "\n";
      }
      return text;
    };
    CHECK(lines("together") == lines("alone"));
  }
  // A trial that was dropped at a rung goes on as a run of its own would.
  const auto dropped = std::find_if(rows.begin(), rows.end(), [](const sweep::Row& row) { return row.steps == 8; });
  REQUIRE(dropped != rows.end());
  std::string parameters[2];
  for (const bool as_member : {false, true}) {
    const std::string run = folder.path(as_member ? "together/" : "alone/") + dropped->run_folder;
    const tests::Finished resumed = tests::call({"run", run, "--resume", "--progress", "none"});
    CHECK(resumed.status == 0);
    parameters[as_member] = test::read_text(run + "/checkpoints/last/params.safetensors") +
                            test::read_text(run + "/checkpoints/last/optimizer.safetensors");
  }
  CHECK(parameters[0] == parameters[1]);
}

TEST_CASE("an ensemble that dies is halved until the trial that ends it is alone", "[sweep]") {
  const SweepFolder folder;
  CalledTrials alone, together;
  const std::string expected = values_of(folder.run(folder.sweep(rates), "alone", alone));
  std::vector<std::string> started;
  together.instead = [&](std::size_t job, const std::vector<std::string>& arguments) -> std::optional<sweep::Exit> {
    const std::string name = fs::path(arguments[1]).stem().string();
    started.push_back(name);
    const bool has_third = name == "ensemble-0000" || name == "ensemble-0002";
    if (has_third || name == "0002") return sweep::Exit{job, 4, 0, "", "no memory\n"};
    return std::nullopt;
  };
  const auto rows = folder.run(folder.sweep(rates, true), "together", together);
  CHECK(started == std::vector<std::string>{"ensemble-0000", "ensemble-0001", "ensemble-0002", "0002", "0003", "0002"});
  CHECK(rows[2].status == sweep::Status::failed);
  CHECK(rows[2].error == "no memory");
  CHECK(values_of({rows[0], rows[1], rows[3]}) ==
        expected.substr(0, expected.find("0002")) + expected.substr(expected.find("0003")));
}

TEST_CASE("an ensemble whose process is killed once goes on as it is", "[sweep]") {
  const SweepFolder folder;
  CalledTrials alone, together;
  const std::string expected = values_of(folder.run(folder.sweep(rates), "alone", alone));
  std::vector<std::string> started;
  together.instead = [&](std::size_t job, const std::vector<std::string>& arguments) -> std::optional<sweep::Exit> {
    started.push_back(fs::path(arguments[1]).stem().string());
    if (started.size() == 1) return sweep::Exit{job, 0, SIGKILL, "", ""};
    return std::nullopt;
  };
  CHECK(values_of(folder.run(folder.sweep(rates, true), "together", together)) == expected);
  CHECK(started == std::vector<std::string>{"ensemble-0000", "ensemble-0000"});
}

TEST_CASE("a run that dies is tried once more, alone; one that a guard stops has no value", "[sweep]") {
  const SweepFolder folder;
  CalledTrials trials;
  std::map<std::string, int> attempts;
  trials.instead = [&](std::size_t job, const std::vector<std::string>& arguments) -> std::optional<sweep::Exit> {
    const std::string name = fs::path(arguments[1]).stem().string();
    const int attempt = ++attempts[name];
    if (name == "0000" && attempt == 1) return sweep::Exit{job, 0, SIGKILL, "", ""};
    if (name == "0001") return sweep::Exit{job, 1, 0, R"({"errors": [{"message": "the disk is full"}]})", ""};
    if (name == "0002") return sweep::Exit{job, 5, 0, R"({"errors": [{"message": "loss is NaN at step 3"}]})", ""};
    return std::nullopt;
  };
  const std::vector<sweep::Row> rows = folder.run(folder.sweep(rates), "sweep", trials);
  CHECK(attempts == std::map<std::string, int>{{"0000", 2}, {"0001", 2}, {"0002", 1}, {"0003", 1}});
  CHECK(rows[0].status == sweep::Status::done);
  CHECK(rows[0].value);
  CHECK(rows[1].status == sweep::Status::failed);
  CHECK(rows[1].error == "the disk is full");
  CHECK(rows[1].exit_status == 1);
  CHECK(rows[2].status == sweep::Status::done);
  CHECK_FALSE(rows[2].value);
  CHECK(rows[2].error == "loss is NaN at step 3");
  CHECK(rows[3].value);
  CHECK(sweep::write_summary(folder.path("sweep"), false, 0).exit_status == 0);
  // The failed one is not tried again.
  CalledTrials again;
  folder.run(folder.sweep(rates), "sweep", again, true);
  CHECK(again.calls == 0);
}

TEST_CASE("a sweep of which every run fails ends with exit status 1", "[sweep]") {
  const SweepFolder folder;
  CalledTrials trials;
  trials.instead = [](std::size_t job, const auto& /*arguments*/) { return sweep::Exit{job, 3, 0, "", "no data\n"}; };
  const auto rows = folder.run(folder.sweep(rates), "sweep", trials);
  CHECK(trials.calls == 4);  // what would fail again is not tried again
  CHECK(rows[0].error == "no data");
  CHECK(sweep::write_summary(folder.path("sweep"), false, 0).exit_status == 1);
  CHECK_THROWS_WITH(sweep::best_of(sweep::read_results(folder.path("sweep"))),
                    "error: no trial of this sweep has a value; the reason in 4 trials: no data\n"
                    "  help: pmaptrain sweep show lists the trials, each with its reason\n");
}

TEST_CASE("a sweep of which no trial has a value ends with exit status 1 and says why", "[sweep]") {
  const SweepFolder folder;
  CalledTrials trials;
  for (const bool vectorize : {true, false}) {
    INFO(vectorize);
    const std::string name = vectorize ? "together" : "alone";
    folder.run(folder.sweep("parameters: {optimizer.learning_rate: {choice: [1.0e+30, 1.0e+31]}}\n", vectorize), name,
               trials);
    const sweep::Summary summary = sweep::write_summary(folder.path(name), false, 0);
    CHECK(summary.exit_status == 1);
    REQUIRE(summary.failure);
    CHECK(summary.failure->message ==
          "no trial of this sweep has a value; the reason in 2 trials: a guard stopped it after 1 step");
    CHECK(contains(summary.text, "done: a guard stopped it after 1 step\n"));
    const json document = json::parse(summary.json);
    CHECK(document["status"] == "failed");
    CHECK(document["errors"][0]["kind"] == "result");
    CHECK(document["exit_status"] == 1);
  }
}

TEST_CASE("a random search draws no combination twice, and says where there are fewer than trials", "[sweep]") {
  const SweepFolder folder;
  const std::string few =
      "parameters: {optimizer.learning_rate: {choice: [0.1, 0.2, 0.3]}, seed: {log_int: [4, 7]}}\n"
      "search: random\n";
  for (int seed = 0; seed < 3; ++seed) {
    INFO(seed);
    const std::string keys = few + "seed: " + std::to_string(seed) + "\n";
    const auto all = sweep::trials_of(folder.sweep(keys + "trials: 30\n"));
    CHECK(all.size() == 12);
    std::set<std::string> different;
    for (const sweep::PlannedTrial& trial : all) different.insert(trial.json);
    CHECK(different.size() == 12);
    // More trials leave those before as they are.
    const auto first = sweep::trials_of(folder.sweep(keys + "trials: 7\n"));
    for (std::size_t i = 0; i < 7; ++i) CHECK(first[i].json == all[i].json);
  }
  const sweep::SweepPlan plan = sweep::plan_sweep(folder.sweep(few + "trials: 30\n"), 1);
  REQUIRE_FALSE(plan.warnings.empty());
  CHECK(plan.warnings.front() == "trials is 30, and the parameters have 12 combinations: each is one trial, 12 in all");
  // The draws of earlier versions may be equal.
  const auto earlier = sweep::trials_of(folder.sweep(few + "trials: 30\n"), {}, sweep::Draws::with_replacement);
  CHECK(earlier.size() == 30);
  // Billions of combinations are not listed.
  const auto many = sweep::trials_of(folder.sweep(
      "parameters: {seed: {int: [0, 1000000000]}, data.seed: {int: [0, 100000]}}\nsearch: random\ntrials: 50\n"));
  CHECK(many.size() == 50);
}

TEST_CASE("a sweep that does not say by what it selects does as its base", "[sweep]") {
  const SweepFolder folder;
  std::string text = test::read_text(folder.path("base.yaml"));
  text.insert(text.find("duration: 4 epochs"), "checkpoint: {best: {metric: mean_absolute_error, mode: max}}, ");
  test::write_text(folder.path("base.yaml"), text);
  const spec::Sweep sweep = folder.sweep(rates);
  CHECK(sweep.spec().metric == "mean_absolute_error");
  CHECK(sweep.spec().mode == spec::Mode::max);
  CHECK(contains(sweep.resolved(), "metric: mean_absolute_error"));
  CHECK(folder.sweep(rates + "metric: mean_absolute_error\n").spec().mode == spec::Mode::max);
  CHECK(contains(error_of([&] { folder.sweep(rates + "metric: loss\n"); }),
                 "error: the sweep selects by loss (min), and its base by mean_absolute_error"));
}

TEST_CASE("a sweep that its folder has is the one of its file, also where that sets a key to null", "[sweep]") {
  const SweepFolder folder;
  const spec::Sweep sweep = folder.sweep(rates + "set: {train.early_stopping: null}\n");
  CHECK(contains(sweep.resolved(), "train.early_stopping: null"));
  test::write_text(folder.path("again.yaml"), sweep.resolved());
  CHECK(spec::Sweep::load(folder.path("again.yaml"), {}).resolved() == sweep.resolved());
}

TEST_CASE("a random trial depends on the seed, its number and the names alone", "[sweep]") {
  const SweepFolder folder;
  const std::string two =
      "parameters: {optimizer.learning_rate: {log_uniform: [0.001, 0.1]}, optimizer.sgd.momentum: {uniform: [0.1, "
      "0.9]}}\n"
      "search: random\n";
  const std::string turned =
      "parameters: {optimizer.sgd.momentum: {uniform: [0.1, 0.9]}, optimizer.learning_rate: {log_uniform: [0.001, "
      "0.1]}}\n"
      "search: random\n";
  const auto trials = sweep::trials_of(folder.sweep(two + "trials: 3\n"));
  const auto more = sweep::trials_of(folder.sweep(turned + "trials: 9\n"));
  for (std::size_t i = 0; i < trials.size(); ++i) CHECK(json::parse(trials[i].json) == json::parse(more[i].json));
  const auto other = sweep::trials_of(folder.sweep(two + "trials: 3\nseed: 1\n"));
  CHECK(other[0].json != trials[0].json);
  for (const auto& trial : more) {
    const double rate = json::parse(trial.json)["optimizer.learning_rate"];
    CHECK((rate >= 0.001 && rate <= 0.1));
  }
}

TEST_CASE("values of every kind become configs, and free names set keys together", "[sweep]") {
  const SweepFolder folder;
  const spec::Sweep sweep = folder.sweep(
      "parameters:\n"
      "  optimizer.learning_rate: {range: [0.1, 0.3, 0.1]}\n"
      "  model.layers.0.dense.use_bias: {choice: [true, false]}\n"
      "  size: {choice: [{data.batch_size: 8, optimizer.sgd.momentum: 0.1}, {data.batch_size: 16}]}\n");
  const auto trials = sweep::trials_of(sweep);
  REQUIRE(trials.size() == 12);
  CHECK(trials[9].json ==
        R"({"optimizer.learning_rate":0.3,"model.layers.0.dense.use_bias":true,"size":{"data.batch_size":16}})");
  const spec::Loaded loaded = sweep.config(trials[8].values, 0, "t");
  CHECK(contains(loaded.resolved, "batch_size: 8"));
  CHECK(contains(loaded.resolved, "momentum: 0.1"));
  CHECK(contains(loaded.resolved, "learning_rate: 0.3"));
  CHECK(contains(loaded.resolved, "name: t\n"));
}

TEST_CASE("the base with a run's values as --set is the config of that run", "[sweep]") {
  const SweepFolder folder;
  const spec::Sweep sweep = folder.sweep(
      "set:\n"
      "  mesh.axes: {devices: 4}\n"
      "  optimizer.sgd.momentum: ~\n"
      "  train.duration: 2 epochs\n"
      "  model.init.from: {path: first.safetensors, rename: {\"a: b.*\": \"dense_0.*\"}}\n"
      "  model.init.from.rename.\"c.d\": dense_0.kernel\n"
      "parameters:\n"
      "  optimizer.learning_rate: {log_uniform: [0.01, 0.1]}\n"
      "  size: {choice: [{data.batch_size: 8, model.layers.0.dense.use_bias: false}, {data.batch_size: 16}]}\n"
      "search: random\ntrials: 4\nreplicates: {seed: [3, 4], data.seed: [5, 6]}\nseed: 7\n");
  const auto trials = sweep::trials_of(sweep);
  for (const auto& trial : trials) {
    for (const std::int64_t replicate : {0, 1}) {
      spec::Overrides overrides;
      overrides.set = sweep.settings(trial.values, replicate);
      overrides.name = "t";
      CHECK(spec::load(sweep.base(), overrides).resolved == sweep.config(trial.values, replicate, "t").resolved);
    }
  }
  const std::vector<std::string> set = sweep.settings(trials[0].values, 1);
  REQUIRE(set.size() == 11);  // without the sweep's data.seed, which the replicates have
  CHECK(set[0] == "mesh.axes={devices: 4}");
  CHECK(set[1] == "optimizer.sgd.momentum=null");
  CHECK(set[3] ==
        "model.init.from={path: " + folder.path("first.safetensors") + ", rename: {\"a: b.*\": \"dense_0.*\"}}");
  CHECK(set[4] == "model.init.from.rename.\"c.d\"=dense_0.kernel");
  CHECK(set[set.size() - 2] == "data.seed=6");
  CHECK(set.back() == "train.checkpoint.best={metric: loss, mode: min}");
}

TEST_CASE("tables, CSV and JSON of a sweep have all its runs, the best first", "[sweep]") {
  const SweepFolder folder;
  CalledTrials trials;
  folder.run(folder.sweep(rates), "sweep", trials);
  const sweep::Results results = sweep::read_results(folder.path("sweep"));
  const std::string text = sweep::results_text(results, 2);
  CHECK(contains(text, "4 trials (4 done), ordered by the best loss of each run"));
  CHECK(contains(text, "  and 2 more\n"));
  const json document = json::parse(sweep::results_json(results, 0));
  REQUIRE(document["trials"].size() == 4);
  for (std::size_t i = 1; i < 4; ++i) CHECK(document["trials"][i - 1]["value"] <= document["trials"][i]["value"]);
  const std::string csv = sweep::results_csv(results);
  CHECK(csv.starts_with(
      "trial,replicate,status,value,steps,seconds,run_folder,exit_status,error,optimizer.learning_rate\n"));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 5);
  // The best config trains to the value of the best trial.
  const auto& best = sweep::best_of(results);
  test::write_text(folder.path("best.yaml"), best.runs.front().config);
  const auto finished =
      tests::call({"run", folder.path("best.yaml"), "--run-dir", folder.path("again"), "--json", "--progress", "none"});
  CHECK(json::parse(finished.out)["best"]["value"].get<double>() == *best.score.value);
}
