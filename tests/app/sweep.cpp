// The commands of sweeps as a user calls them: what they refuse, and a real sweep of processes that is killed.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/sweep/store.h"
#include "tests/app/call.h"
#include "tests/app/process.h"
#include "tests/catch.h"

using namespace pmaptrain;
using nlohmann::json;
using pmaptrain::tests::call;
using pmaptrain::tests::contains;
using pmaptrain::tests::Finished;
using pmaptrain::tests::Process;
using pmaptrain::tests::run_binary;
using pmaptrain::tests::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

// A config whose runs take some tenths of a second, and a sweep of six of them.
void write_sweep(const TemporaryFolder& folder, const std::string& more = "") {
  folder.write(
      "base.yaml",
      "data: {source: {synthetic_linear: {features: 3, examples_per_device: 400, noise: 0.1}}, validation: 0.2,\n"
      "       batch_size: 8}\n"
      "mesh: {axes: {devices: 2}}\n"
      "model: {layers: [dense: 1]}\n"
      "loss: mean_squared_error\n"
      "optimizer: {sgd: {}, learning_rate: 0.1}\n"
      "train: {duration: 40 epochs, log_every: never, eval_every: 1 epoch, checkpoint: {every: 2 epochs}}\n");
  folder.write("s.yaml",
               "base: base.yaml\nvectorize: false\n"
               "parameters: {optimizer.learning_rate: {log_uniform: [0.001, 0.1]}}\n"
               "search: {successive_halving: {min: 10 epochs, factor: 2}}\ntrials: 6\n" +
                   more);
}

}  // namespace

TEST_CASE("commands of sweeps say what they lack", "[app]") {
  const TemporaryFolder folder;
  write_sweep(folder);
  const auto refused = [](const std::vector<std::string>& arguments) {
    const Finished finished = call(arguments);
    CHECK(finished.status == 2);
    return finished.err;
  };
  CHECK(refused({"sweep", "rnu"}) == "error: pmaptrain sweep has no 'rnu'\n  help: did you mean 'run'?\n");
  CHECK(refused({"sweep", "list"}) ==
        "error: pmaptrain sweep has no 'list'\n  help: pmaptrain sweep run SWEEP.yaml, show DIR or best DIR\n");
  CHECK(refused({"sweep", "show", folder / "nowhere"}) ==
        "error: '" + (folder / "nowhere") +
            "' is no folder of a sweep\n  help: there is no such folder; pmaptrain sweep run SWEEP.yaml writes "
            "sweeps/NAME\n");
  CHECK(refused({"sweep", "best", folder.path().string()}) ==
        "error: '" + folder.path().string() +
            "' is no folder of a sweep\n  help: name the folder that pmaptrain sweep run wrote: sweeps/NAME\n");
  CHECK(refused({"sweep", "run", folder / "s.yaml", "--resume", "--overwrite"}) ==
        "error: --overwrite and --resume were both given\n"
        "  help: --resume goes on with the sweep, --overwrite replaces it\n");
  CHECK(refused({"sweep", "run", folder / "s.yaml", "--dir", folder.path().string()}) ==
        "error: '" + folder.path().string() +
            "' is there, and pmaptrain sweep did not write it\n"
            "  help: name another one: --dir DIR\n");
  CHECK(refused({"sweep", "run", folder / "s.yaml", "--dir", folder / "s.yaml"}) ==
        "error: '" + (folder / "s.yaml") + "' is no folder\n  help: name another one: --dir DIR\n");
  CHECK(contains(refused({"sweep", "run", folder / "t.yaml"}), "there is no such file"));
  CHECK(refused({"sweep", "run", folder / "another.yaml"}) ==
        (folder / "another.yaml") +
            ": error: there is no such file\n"
            "  help: SWEEP is a YAML file or the folder of a sweep; docs/sweeps.md has an example\n");
  CHECK(refused({"sweep", "show", folder / "d", "--csv", folder / "none/s.csv"}) ==
        "--csv:1:7: error: there is no folder '" + (folder / "none") + "'\n    1 | --csv " + (folder / "none/s.csv") +
            "\n      |       " + "^" + std::string((folder / "none/s.csv").size() - 1, '~') + "\n  help: mkdir -p " +
            (folder / "none") + "\n");
  const json document = json::parse(call({"sweep", "run", folder / "s.yaml", "--set", "trials=0", "--json"}).out);
  CHECK(document["exit_status"] == 2);
  CHECK(document["errors"][0]["message"] == "trials takes an integer from 1 to 100,000, not '0'");
}

TEST_CASE("a command that was meant for a sweep, or for a run, names the other one", "[app]") {
  const TemporaryFolder folder;
  write_sweep(folder);
  const std::string sweep = folder / "s.yaml", base = folder / "base.yaml", trials = folder / "sweeps/s";
  const auto refused = [](const std::vector<std::string>& arguments) {
    const Finished finished = call(arguments);
    CHECK(finished.status == 2);
    return finished.err;
  };
  const std::string is_sweep =
      sweep + ": error: this is a sweep file, not the config of a run\n  help: pmaptrain sweep run " + sweep + "\n";
  CHECK(refused({"run", sweep}) == is_sweep);
  CHECK(refused({"validate", sweep}) == is_sweep);
  const std::string is_config = refused({"sweep", "run", base});
  CHECK(is_config.starts_with(base + ":1:1: error: this is the config of a run, not a sweep file\n"));
  CHECK(contains(is_config, "help: pmaptrain run " + base + " trains it; a sweep file names it: base: base.yaml\n"));
  CHECK(refused({"sweep", "resume", sweep}) ==
        "error: pmaptrain sweep has no 'resume'\n  help: pmaptrain sweep run " + sweep + " --resume\n");
  CHECK(refused({"sweep", "run", sweep, "--trials", "3"}) ==
        "error: pmaptrain sweep run has no option '--trials'\n  help: write --set trials=3\n");
  CHECK(refused({"sweep", "best", trials, "--config"}) ==
        "error: pmaptrain sweep best has no option '--config'\n  help: did you mean '--print-config'?\n");
  fs::create_directories(trials);
  folder.write("sweeps/s/sweep.sqlite", "");
  const std::string of_trial = refused({"eval", trials});
  CHECK(contains(of_trial, "this is the folder of a sweep, not of a run\n"));
  CHECK(contains(of_trial, "each trial has a run folder: " + trials + "/trials/NNNN; pmaptrain sweep best " + trials));
}

TEST_CASE("the best trial of a sweep that has not ended is called the best so far", "[app]") {
  const TemporaryFolder folder;
  {
    sweep::Store store(folder.path(), sweep::Store::Access::write);
    store.set_text("metric", "loss");
    store.set_text("mode", "min");
    store.set_text("value", "best");
    store.set_text("search", "grid");
    std::vector<sweep::Row> rows(3);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i].number = static_cast<std::int64_t>(i);
      rows[i].parameters = R"({"opt":{"optimizer.adam":{}}})";
      rows[i].run_folder = "trials/0000";
    }
    rows[1].status = sweep::Status::done;
    rows[1].value = 0.5;
    store.add(rows);
  }
  const std::string path = folder.path().string();
  const Finished best = call({"sweep", "best", path});
  CHECK(best.status == 0);
  CHECK(best.out.starts_with("trial 1: loss 0.5\n  opt  adam\n"));
  CHECK(best.err ==
        "note: 1 of 3 trials done, so this is the best so far; to go on: pmaptrain sweep run " + path + " --resume\n");
}

TEST_CASE("a dry run of a sweep shows its trials and what they cost, and writes nothing", "[app]") {
  const TemporaryFolder folder;
  write_sweep(folder);
  const Finished shown = call({"sweep", "run", folder / "s.yaml", "--dry-run", "--dir", folder / "d"});
  CHECK(shown.status == 0);
  CHECK(contains(shown.out, "6 trials by successive_halving: 6 runs, "));
  CHECK(contains(shown.out, "trials that differ in numbers alone share a program:\n"));
  const json document = json::parse(call({"sweep", "run", folder / "s.yaml", "--dry-run", "--json"}).out);
  CHECK(document["trials"].size() == 6);
  CHECK(document["base"] == folder / "base.yaml");
  const json& set = document["trials"][0]["set"];
  REQUIRE(set.size() == 3);
  CHECK(set[0] == "optimizer.learning_rate=" + document["trials"][0]["parameters"]["optimizer.learning_rate"].dump());
  CHECK(set[1] == "train.checkpoint.best={metric: loss, mode: min}");
  CHECK(set[2] == "data.seed=0");
  CHECK(document["programs"][0]["rungs"] == json({800, 1600, 3200}));
  CHECK(document["seconds"].get<double>() > 0);
  CHECK_FALSE(fs::exists(folder / "d"));
}

TEST_CASE("a dry run of a sweep that would go on refuses what --resume refuses", "[app][process]") {
  const TemporaryFolder folder;
  write_sweep(folder);
  folder.write("s.yaml",
               "base: base.yaml\nparameters: {optimizer.learning_rate: {choice: [0.01, 0.1]}}\n"
               "set: {train.duration: 1 epoch}\n");
  const auto resume = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"sweep", "run", folder / "s.yaml", "--dir", folder / "d", "--resume"});
    return run_binary(more);
  };
  const Finished fresh = resume({"--dry-run"});
  CHECK(fresh.status == 0);
  CHECK_FALSE(contains(fresh.err, "would go on"));
  CHECK_FALSE(fs::exists(folder / "d"));
  REQUIRE(resume({"--json"}).status == 0);
  const Finished goes_on = resume({"--dry-run"});
  INFO(goes_on.err);
  CHECK(goes_on.status == 0);
  CHECK(contains(goes_on.err, "note: --resume would go on in '" + folder / "d" + "': 2 of 2 runs done, "));
  for (const std::string edit :
       {"parameters={optimizer.learning_rate: {choice: [0.01, 0.2]}}", "value=last", "train.duration=3 epochs"}) {
    INFO(edit);
    const Finished planned = resume({"--dry-run", "--set", edit}), run = resume({"--set", edit});
    CHECK(planned.status == 2);
    CHECK(planned.out.empty());
    CHECK(planned.err == run.err);
  }
}

TEST_CASE("a sweep that is killed with its runs, and one that a signal stops, go on to the same values",
          "[app][process][smoke]") {
  const TemporaryFolder folder;
  write_sweep(folder);
  const auto arguments = [&](const std::string& name) {
    return std::vector<std::string>{"sweep",       "run",      folder / "s.yaml", "--dir",
                                    folder / name, "--resume", "--set",           "max_concurrent=2"};
  };
  const auto values = [&](const std::string& name) {
    const json shown = json::parse(call({"sweep", "show", folder / name, "--json"}).out);
    std::string text;
    for (const auto& trial : shown["trials"]) {
      text += trial["number"].dump() + " " + trial["value"].dump() + " " + trial["steps"].dump() + "\n";
    }
    return text;
  };
  const Finished whole = run_binary(arguments("whole"));
  REQUIRE(whole.status == 0);
  CHECK(contains(whole.err, "rung 1: 3 of 6 trials go on\n"));
  CHECK(contains(whole.out, "6 trials (6 done), ordered by their rungs and the best loss of each run\n"));
  CHECK(json::parse(std::ifstream(folder / "whole/summary.json"))["status"] == "done");
  for (const int signal : {SIGKILL, SIGTERM}) {
    const std::string name = signal == SIGKILL ? "killed" : "stopped";
    Process process(arguments(name));
    REQUIRE(process.wait_for("trial 0001"));
    process.send(signal);
    const Finished ended = process.wait();
    CHECK(ended.signal == signal);
    if (signal == SIGTERM) {
      CHECK(contains(ended.err, "stopping all trials with checkpoints"));
      CHECK(json::parse(std::ifstream(folder / "stopped/summary.json"))["status"] == "stopped");
    }
    // No trial runs any more, whatever the store has, once the trials' processes have seen that the sweep is gone.
    Finished shown = call({"sweep", "show", folder / name});
    for (int i = 0; i < 100 && contains(shown.out, "running"); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      shown = call({"sweep", "show", folder / name});
    }
    CHECK_FALSE(contains(shown.out, "running"));
    CHECK(contains(shown.err,
                   "note: no process runs this sweep; to go on: pmaptrain sweep run " + folder / name + " --resume\n"));
    const Finished resumed = run_binary(arguments(name));
    CHECK(resumed.status == 0);
    CHECK(values(name) == values("whole"));
  }
  const auto best = [&](const std::vector<std::string>& options) {
    std::vector<std::string> all{"sweep", "best", folder / "whole"};
    all.insert(all.end(), options.begin(), options.end());
    return call(all).out;
  };
  json document = json::parse(best({"--print-config", "--json"}));
  CHECK(document["config"] == best({"--print-config"}));
  document.erase("config");
  CHECK(document == json::parse(best({"--json"})));
  // The sweep is done: nothing is left to run.
  const Finished again = run_binary(arguments("whole"));
  CHECK(again.status == 0);
  CHECK_FALSE(contains(again.err, "trial 0"));
}

TEST_CASE("a second sweep in a folder is refused while the first one runs", "[app][process]") {
  const TemporaryFolder folder;
  write_sweep(folder);
  Process first({"sweep", "run", folder / "s.yaml", "--dir", folder / "d"});
  REQUIRE(first.wait_for("trial 0"));
  // It is told whatever else is wrong with the command: there is a sweep, and no --resume.
  const Finished second = run_binary({"sweep", "run", folder / "s.yaml", "--dir", folder / "d"});
  CHECK(second.status == 4);
  CHECK(contains(second.err, "error: another sweep runs in '" + (folder / "d") + "'\n"));
  first.send(SIGTERM);
  first.wait();
}

TEST_CASE("a sweep that was started with SIGCHLD ignored sees its trials end", "[app][process]") {
  const TemporaryFolder folder;
  write_sweep(folder);
  Process sweep({"sweep", "run", folder / "s.yaml", "--dir", folder / "d", "--set", "trials=2"}, SIGCHLD);
  CHECK(sweep.wait().status == 0);
}

TEST_CASE("a sweep without standard streams runs to its end, and fails only for what it cannot print",
          "[app][process]") {
  const TemporaryFolder folder;
  write_sweep(folder);
  const auto run = [&](const std::string& name, const std::string& closed) {
    return pmaptrain::tests::run_shell("exec \"$PROGRAM\" sweep run '" + (folder / "s.yaml") +
                                       "' --set trials=2 --dir '" + (folder / name) + "' " + closed)
        .status;
  };
  CHECK(run("a", "<&- >&- 2>&-") == 1);
  CHECK(run("b", "<&- 2>&-") == 0);
  const auto shown = [&](const std::string& name) {
    const json document = json::parse(call({"sweep", "show", folder / name, "--json"}).out);
    CHECK(json::parse(std::ifstream(folder / (name + "/summary.json")))["status"] == "done");
    return document["trials"][0]["value"];
  };
  CHECK(shown("a").is_number());
  CHECK(shown("a") == shown("b"));
}
