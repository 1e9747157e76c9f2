// What the program trains and writes, and how it ends: as a process where it shows how a run goes on.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/app/call.h"
#include "tests/app/predicting.h"
#include "tests/app/process.h"
#include "tests/catch.h"
#include "tests/slice.h"

using namespace pmaptrain::tests;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

std::vector<fs::path> files(const fs::path& folder, const std::string& extension) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == extension) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

TEST_CASE("every shipped config trains two steps and leaves a whole run folder", "[app][process]") {
  const auto configs = files("configs", ".yaml");
  CHECK(configs.size() >= 4);
  pmaptrain::test::Slice slice(pmaptrain::test::slices_with_sanitizer(3));
  for (const fs::path& config : configs) {
    if (!slice.takes()) continue;
    INFO(config);
    const TemporaryFolder folder;
    const std::string run = folder / "run";
    std::vector<std::string> arguments{"run", config.string(), "--run-dir", run, "--max-steps", "2"};
    if (config.stem() == "cnn") {
      arguments.insert(arguments.end(), {"--set", "data.source.synthetic_images.test=256"});
    }
    if (config.stem() == "resnet18") {
      arguments.insert(arguments.end(), {"--set",
                                         "data.source.synthetic_images={height: 8, width: 8, channels: 3, "
                                         "classes: 10, train: 256, test: 16}"});
    }
    if (config.stem() == "unet") {
      arguments.insert(arguments.end(),
                       {"--set", "data.source={synthetic_masks: {height: 16, width: 16, train: 40, test: 8}}", "--set",
                        "data.batch_size=8"});
    }
    if (config.stem() == "volumes") {
      arguments.insert(arguments.end(), {"--set", "data.source.synthetic_volumes.test=64"});
    }
    const bool is_large = config.stem() == "resnet_fashion" || config.stem() == "vit";
    const bool is_fashion = config.stem() == "fashion_mnist" || is_large;
    if (config.stem() == "gpt2") continue;  // tests/app/gpt2.cpp has it
    if (is_fashion && !fs::exists("/usr/share/datasets/fashion-mnist")) {
      WARN("Debian's package dataset-fashion-mnist is not installed; " << config.filename() << " is left out");
      continue;
    }
    if (config.stem() == "gpt") {
      if (!fs::exists("/usr/share/common-licenses/MPL-2.0")) {
        WARN("Debian's package base-files is not installed; " << config.filename() << " is left out");
        continue;
      }
      arguments.insert(arguments.end(), {"--set", "data.batch_size=4", "--set", "data.limit={validation: 4}"});
    }
    if (config.stem() == "gpt_bpe") {
      if (!fs::exists("/usr/include/c++")) {
        WARN("g++ is not installed; " << config.filename() << " is left out");
        continue;
      }
      arguments.insert(arguments.end(), {"--set", "data.batch_size=4", "--set", "data.limit={validation: 4}"});
    }
    if (is_large) arguments.insert(arguments.end(), {"--set", "data.limit={test: 256}"});
    const Finished result = run_binary(arguments);
    INFO(result.err);
    CHECK(result.status == 0);
    CHECK(contains(result.out, "run folder: " + run));
    CHECK(contains(result.err, "loss"));
    for (const char* name :
         {"config.yaml", "metrics.jsonl", "log.txt", "summary.json", "checkpoints/last/params.safetensors",
          "checkpoints/last/optimizer.safetensors", "checkpoints/last/state.json"}) {
      INFO(name);
      CHECK(fs::exists(fs::path(run) / name));
    }
    const json summary = json::parse(read_text(fs::path(run) / "summary.json"));
    CHECK(summary["exit_status"] == 0);
    CHECK(summary["name"] == config.stem().string());
    CHECK(summary["run_dir"] == run);
    CHECK(summary["config_hash"] ==
          json::parse(read_text(fs::path(run) / "checkpoints/last/state.json"))["config_hash"]);
    CHECK(summary["parameters"] == json::parse(call({"validate", config.string(), "--json"}).out)["parameters"]);
    CHECK(summary["steps"].get<int>() <= 2);
  }
}

TEST_CASE("every shipped program runs", "[app]") {
  const auto programs = files("configs/programs", ".pmt");
  CHECK(programs.size() >= 2);
  for (const fs::path& program : programs) {
    const Finished result = call({"exec", program.string()});
    INFO(program << "\n" << result.err);
    CHECK(result.status == 0);
    CHECK(result.err.empty());
    CHECK(contains(result.out, "logical devices"));
  }
}

TEST_CASE("one step of gradient averaging gives the parameters computed by hand", "[app][process]") {
  const TemporaryFolder folder;
  const Finished result = run_binary({"run", "configs/gradient_averaging.yaml", "--run-dir", folder / "run"});
  CHECK(result.status == 0);
  CHECK(contains(result.out, "dense_0.kernel   1.0000   2.6250"));
  CHECK(contains(result.out, "dense_0.bias     0.0000  0.16000"));
}

TEST_CASE("run --json prints the summary and nothing else, and eval agrees with it", "[app][process]") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  const Finished result =
      run_binary({"run", "configs/linear_regression.yaml", "--run-dir", run, "--json", "--progress", "none"});
  CHECK(result.status == 0);
  CHECK(result.err.empty());
  const json summary = json::parse(result.out);
  CHECK(summary["status"] == "done");
  CHECK(summary["reason"] == "duration");
  CHECK(summary["steps"] == 50);
  CHECK(summary["final"]["train"]["loss"].get<double>() < 0.05);
  CHECK(summary == json::parse(read_text(fs::path(run) / "summary.json")));

  const Finished eval = run_binary({"eval", run, "--split", "train", "--json"});
  INFO(eval.out << eval.err);
  CHECK(eval.status == 0);
  const json measures = json::parse(eval.out);
  CHECK(measures["examples"] == 800);
  CHECK(measures["checkpoint"] == "step-00000050");
  // Its loss is that of the parameters after the last update.
  CHECK(measures["loss"].get<double>() <= summary["final"]["train"]["loss"].get<double>());
  CHECK(run_binary({"eval", run}).status == 2);  // there is no test split
  CHECK(run_binary({"eval", run, "--split", "train", "--checkpoint", "7"}).status == 2);
  CHECK(contains(run_binary({"eval", "configs/cnn.yaml"}).err, "eval takes a run folder"));

  // A run folder is a config, too.
  CHECK(run_binary({"validate", run}).status == 0);
}

TEST_CASE("a run folder that exists is refused with ready commands", "[app][process]") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  const std::vector<std::string> arguments{"run", "configs/gradient_averaging.yaml", "--run-dir", run, "-q"};
  CHECK(run_binary(arguments).status == 0);
  const Finished again = run_binary(arguments);
  CHECK(again.status == 2);
  CHECK(again.out.empty());
  CHECK(contains(again.err, "pmaptrain run configs/gradient_averaging.yaml -q --run-dir " + run + " --overwrite"));
  std::vector<std::string> overwriting = arguments;
  overwriting.emplace_back("--overwrite");
  CHECK(run_binary(overwriting).status == 0);
}

TEST_CASE("exit statuses tell config, data and resources apart", "[app]") {
  CHECK(call({}).status == 0);
  CHECK(call({"run", "nothing.yaml"}).status == 2);
  CHECK(call({"validate", "configs/fashion_mnist.yaml", "--set", "data.source.fashion_mnist.dir=/nothing"}).status ==
        3);
  const Finished large = call({"validate", "configs/cnn.yaml", "--set", "model.layers.7.dense=10000000"});
  INFO(large.err);
  CHECK(large.status == 4);
  CHECK(contains(large.err, "available"));
}

TEST_CASE("failed output is an error, but a closed pipe is not", "[app][process]") {
  CHECK(run_shell("exec \"$PROGRAM\" --version > /dev/full 2> /dev/null").status == 1);
  CHECK(run_shell("exec \"$PROGRAM\" --version > /dev/null").status == 0);
  CHECK(run_shell("set -o pipefail; \"$PROGRAM\" --version | true").status == 0);
}

TEST_CASE("predictions end quietly where their reader went away, and with an error where a disk is full",
          "[app][process]") {
  TrainedRun run;
  std::string rows = "x,y\n";
  for (int i = 0; i < 40000; ++i) rows += std::to_string(i % 7) + ".25," + std::to_string(i % 2) + "\n";
  run.folder.write("t.csv", rows.substr(0, rows.rfind('\n', 999) + 1));
  run.folder.write("new.csv", rows);
  run.train("  source: {csv: {train: t.csv, target: y}}\n", "dense: 2");
  const std::string predict = "\"$PROGRAM\" predict '" + run.dir + "' --input '" + (run.folder / "new.csv") +
                              "' --output - --as probabilities -q";
  const Finished head = run_shell("set -o pipefail; " + predict + " | head -2");
  CHECK(head.status == 0);
  CHECK(head.out.starts_with("probability_0,probability_1\n"));
  CHECK(head.err.empty());
  const Finished full = run_shell(predict + " > /dev/full");
  CHECK(full.status == 1);
  CHECK(full.err == "error: standard output could not be written\n");
}

TEST_CASE("a loss that is not finite ends the run with status 5", "[app][process]") {
  const TemporaryFolder folder;
  const Finished result = run_binary({"run", "configs/linear_regression.yaml", "--run-dir", folder / "run", "--json",
                                      "--set", "optimizer.learning_rate=1.0e+30"});
  INFO(result.err);
  CHECK(result.status == 5);
  const json summary = json::parse(result.out);
  CHECK(summary["reason"] == "guard");
  CHECK(summary["exit_status"] == 5);
  CHECK(summary["errors"][0]["kind"] == "guard");
  CHECK(contains(summary["errors"][0]["message"], "not finite"));
  CHECK(contains(result.err, "error: step "));
  CHECK_FALSE(contains(result.err, "warning: step "));
}

TEST_CASE("eval --json marks measures that are not finite", "[app][process]") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  const Finished result = run_binary({"run", "configs/gradient_averaging.yaml", "--run-dir", run, "--set",
                                      "model.init={values: {dense_0: {kernel: [[1.0e+30]], bias: [0.0]}}}"});
  CHECK(result.status == 5);
  const json measures = json::parse(run_binary({"eval", run, "--split", "train", "--json"}).out);
  CHECK(measures["loss"].is_null());
  CHECK(measures["finite"] == false);
}

TEST_CASE("--overwrite does not remove the parameters that a run starts from", "[app][process]") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  CHECK(run_binary({"run", "configs/gradient_averaging.yaml", "--run-dir", run}).status == 0);
  const std::string parameters = run + "/checkpoints/last/params.safetensors";
  const std::string before = read_text(parameters);
  const Finished refused = run_binary({"run", "configs/gradient_averaging.yaml", "--run-dir", run, "--overwrite",
                                       "--set", "model.init={from: " + parameters + "}"});
  CHECK(refused.status == 2);
  CHECK(contains(refused.err,
                 "error: --overwrite would remove '" + parameters + "', which this run reads\n  help: copy"));
  CHECK(read_text(parameters) == before);
}

TEST_CASE("an option that replaces a choice is a note, which a quiet run has in its log", "[app][process]") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  const Finished result = run_binary(
      {"run", "configs/gradient_averaging.yaml", "--run-dir", run, "--set", "optimizer.adam.b1=0.8", "--quiet"});
  CHECK_FALSE(contains(result.err, "optimizer.adam"));
  CHECK(contains(read_text(fs::path(run) / "log.txt"), "note: optimizer.adam replaces optimizer.sgd\n"));
  const Finished told = run_binary(
      {"run", "configs/gradient_averaging.yaml", "--run-dir", folder / "told", "--set", "optimizer.adam.b1=0.8"});
  CHECK(contains(told.err, "note: optimizer.adam replaces optimizer.sgd\n"));
  CHECK_FALSE(contains(told.err, "warning: optimizer.adam"));
}

TEST_CASE("a signal ends the run after the step, with a checkpoint, and is raised again", "[app][process]") {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const TemporaryFolder folder;
    const std::string run = folder / "run";
    Process process({"run", "configs/cnn.yaml", "--run-dir", run, "--set", "data.source.synthetic_images.test=64"});
    REQUIRE(process.wait_for("loss"));
    process.send(signal);
    const Finished result = process.wait();
    INFO(result.err);
    CHECK(result.signal == signal);
    CHECK(contains(result.out, "stopped by a signal"));
    const json summary = json::parse(read_text(fs::path(run) / "summary.json"));
    CHECK(summary["status"] == "stopped");
    CHECK(summary["reason"] == "signal");
    CHECK(fs::exists(fs::path(run) / "checkpoints/last/params.safetensors"));
  }
}

TEST_CASE("a signal that was ignored at the start stays ignored", "[app][process]") {
  const TemporaryFolder folder;
  Process process({"run", "configs/cnn.yaml", "--run-dir", folder / "run", "--set",
                   "data.source.synthetic_images.test=64", "--max-steps", "8"},
                  SIGHUP);
  REQUIRE(process.wait_for("loss"));
  process.send(SIGHUP);
  CHECK(process.wait().status == 0);
}

TEST_CASE("a run that is continued for longer keeps its schedule, and its folder repeats it", "[app][process]") {
  const TemporaryFolder folder;
  const std::string config = folder.write("c.yaml",
                                          "data: {source: {synthetic_linear: {features: 2, examples_per_device: 8}}, "
                                          "batch_size: 4}\n"
                                          "model: {layers: [{dense: 1}]}\nloss: mean_squared_error\n"
                                          "optimizer: {sgd: {}, learning_rate: {cosine_decay: {init_value: 0.1, "
                                          "alpha: 0.1}}}\n"
                                          "train: {duration: 4 steps}\n");
  const auto run = [&](const std::string& what, const std::string& name, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"run", what, "--run-dir", folder / name};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished result = run_binary(arguments);
    INFO(result.err);
    CHECK(result.status == 0);
    return result;
  };
  const auto read = [&](const std::string& name, const std::string& file) {
    return read_text(folder / name + "/" + file);
  };
  const std::string parameters = "checkpoints/last/params.safetensors";
  run(config, "by_config");
  fs::copy(folder / "by_config", folder / "by_folder", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  const std::vector<std::string> longer{"--resume", "--set", "train.duration=8 steps"};
  const Finished continued = run(config, "by_config", longer);
  CHECK(contains(continued.err, "the schedule of the learning rate was for 4 steps; the rate from there on is 0.01"));
  run(folder / "by_folder", "by_folder", longer);
  CHECK(contains(read("by_config", "config.yaml"), "{cosine_decay: {init_value: 0.1, decay: 4 steps, alpha: 0.1}}"));
  CHECK(contains(read("by_config", "config.yaml"), "duration: 8 steps"));
  CHECK(read("by_config", "config.yaml") == read("by_folder", "config.yaml"));
  CHECK(read("by_config", parameters) == read("by_folder", parameters));
  run(folder / "by_config", "again");
  CHECK(read("again", parameters) == read("by_config", parameters));
}
