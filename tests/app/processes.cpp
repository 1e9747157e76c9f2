// The processes that tests start, and one whole run by them: under AddressSanitizer no other case with a process runs.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tests/app/process.h"
#include "tests/catch.h"
#include "tests/running.h"

using namespace pmaptrain::tests;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

// Ignores and blocks signals as long as it lives, as what starts the tests may.
class OddSignals {
 public:
  OddSignals() {
    for (const int signal : all) before_.push_back(std::signal(signal, SIG_IGN));
    sigset_t blocked;
    ::sigemptyset(&blocked);
    for (const int signal : all) ::sigaddset(&blocked, signal);
    ::pthread_sigmask(SIG_BLOCK, &blocked, &mask_);
  }
  ~OddSignals() {
    for (std::size_t i = 0; i < before_.size(); ++i) std::signal(all[i], before_[i]);
    ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }
  OddSignals(const OddSignals&) = delete;
  OddSignals& operator=(const OddSignals&) = delete;

 private:
  static constexpr int all[] = {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGTSTP, SIGUSR1};
  std::vector<void (*)(int)> before_;
  sigset_t mask_{};
};

// Of the process that runs this script: the masks of ignored and of blocked signals, and what it reads.
constexpr const char* surroundings = "grep -E '^Sig(Blk|Ign):' /proc/self/status; cat; echo end";

}  // namespace

TEST_CASE("a case without the tag of processes cannot start one", "[app]") {
  const auto lacks_tag = Catch::Matchers::Contains("lacks the tag [process] (it has [app])");
  CHECK_THROWS_WITH(run_binary({"--version"}), lacks_tag);
  CHECK_THROWS_WITH(run_shell("true"), lacks_tag);
  CHECK_THROWS_WITH(binary_path(), lacks_tag);
}

TEST_CASE("a process has the default signals and an empty input, whatever the tests were started with",
          "[app][process][smoke]") {
  const std::string expected = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nend\n";
  CHECK(run_shell(surroundings).out == expected);
  const OddSignals odd;
  CHECK(run_shell(surroundings).out == expected);
  // Without it a child has what the test has.
  const TemporaryFolder folder;
  REQUIRE(std::system(("grep -E '^SigIgn:' /proc/self/status > " + (folder / "out")).c_str()) == 0);
  CHECK_FALSE(contains(read_text(folder / "out"), "0000000000000000"));
}

TEST_CASE("a signal ends a process that the tests started, though they ignore and block it", "[app][process][smoke]") {
  const OddSignals odd;
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    Process process(Shell{"exec sleep 60"});
    process.send(signal);
    CHECK(process.wait().signal == signal);
  }
}

TEST_CASE("an ensemble is trained, stopped, resumed, evaluated and used for predictions by the program",
          "[app][process][smoke]") {
  const TemporaryFolder folder;
  std::string table = "x,y,label\n", rows = "x,y\n";
  for (int i = 0; i < 42; ++i) {
    const std::string x = std::to_string(i % 7), y = std::to_string(i % 5);
    table += x + "," + y + "," + (i % 7 > i % 5 ? "above" : "below") + "\n";
    if (i < 9) rows += x + "," + y + "\n";
  }
  folder.write("table.csv", table);
  folder.write("rows.csv", rows);
  // 42 examples in batches of 12: the last one is padded.
  const std::string config = folder.write("smoke.yaml", R"(mesh: {axes: [{trials: 2}, {batch: 2}]}
ensemble: {axis: trials, vary: {optimizer.learning_rate: [0.01, 0.1]}}
data:
  source: {csv: {train: table.csv, target: label}}
  batch_size: 12
  microbatches: 3
  remainder: mask
model: {layers: [{dense: 8}, relu, {dropout: 0.1}, {dense: 2}]}
loss: softmax_cross_entropy
metrics: [accuracy]
optimizer: {adam: {}, learning_rate: 0.01}
train: {duration: 6 epochs, checkpoint: {every: 1 epoch}}
)");
  const auto run = [&](const std::string& name, std::vector<std::string> more) {
    more.insert(more.begin(), {"run", config, "--run-dir", folder / name, "-q"});
    const Finished result = run_binary(more);
    INFO(result.err);
    CHECK(result.status == 0);
    return result;
  };
  run("whole", {});
  run("parts", {"--max-steps", "9"});
  const Finished resumed = run("parts", {"--resume", "--json"});
  CHECK(json::parse(resumed.out)["steps"] == 24);
  for (const char* const file : {"params.safetensors", "optimizer.safetensors"}) {
    INFO(file);
    const std::string parts = read_text(folder / "parts/checkpoints/last/" + file);
    CHECK(!parts.empty());
    const bool same = parts == read_text(folder / "whole/checkpoints/last/" + file);
    CHECK(same);
  }
  const Finished eval = run_binary({"eval", folder / "parts", "--split", "train", "--json"});
  INFO(eval.err);
  REQUIRE(json::parse(eval.out)["members"].size() == 2);
  CHECK(json::parse(eval.out)["members"][1]["loss"].is_number());
  const Finished predict = run_binary(
      {"predict", folder / "parts", "--input", folder / "rows.csv", "--output", folder / "out.csv", "--member", "1"});
  INFO(predict.err);
  CHECK(predict.status == 0);
  const std::string predicted = read_text(folder / "out.csv");
  CHECK(std::count(predicted.begin(), predicted.end(), '\n') == 10);
}
