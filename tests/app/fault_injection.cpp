// Threads that cannot be started, data that cannot be opened or mapped, and a full disk, each in a process of the
// program (tests/app/faults.cpp). The calls that change a run folder fail in tests/run/failing_calls.cpp.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "core/run/checkpoint.h"
#include "tests/app/call.h"
#include "tests/app/process.h"
#include "tests/catch.h"

using namespace pmaptrain::tests;
using nlohmann::json;
namespace fs = std::filesystem;
namespace run = pmaptrain::run;

namespace {

// Runs a command of the program in which what the variables PMAPTRAIN_FAULT... say fails.
Finished run_failing(const std::string& variables, const std::string& command) {
  return run_shell(variables + " LD_PRELOAD=" + beside_the_tests("libfaults.so") +
                   " ASAN_OPTIONS=verify_asan_link_order=0 exec \"$PROGRAM\" " + command);
}

// A folder with data, a config, a run that stopped at step 2 of 4, and in it a run that is begun again and again.
class FailingRuns {
 public:
  FailingRuns() {
    std::string rows = "x,y\n";
    for (int i = 0; i < 12; ++i) rows += std::to_string(i % 5) + "," + std::to_string(i % 3) + "\n";
    data_ = folder_.write("data.csv", rows);
    config_ = folder_.write("config.yaml",
                            "mesh: {axes: {devices: 2}, workers: 2}\n"
                            "data: {source: {csv: {train: data.csv, test: data.csv, inputs: [x], target: y}}, "
                            "batch_size: 4}\n"
                            "model: {layers: [{dense: 3}, relu, {dense: 1}]}\n"
                            "loss: mean_squared_error\n"
                            "optimizer: {adam: {}, learning_rate: 0.01}\n"
                            "train: {duration: 4 steps, checkpoint: {every: 2 steps}}\n");
    REQUIRE(call({"run", config_, "--run-dir", folder_ / "old", "--quiet", "--max-steps", "2"}).status == 0);
    old_ = pmaptrain::test::listing(folder_ / "old");
  }

  std::string data() const { return data_; }
  std::string path() const { return folder_ / "run"; }

  // How often a run calls what can fail.
  std::map<std::string, int> counts(const std::string& option, const std::string& below) {
    REQUIRE(start("PMAPTRAIN_FAULT_COUNTS=" + (folder_ / "counts"), option, below).status == 0);
    std::map<std::string, int> counts;
    std::istringstream text(read_text(folder_ / "counts"));
    std::string kind;
    for (int count = 0; text >> kind >> count;) counts[kind] = count;
    return counts;
  }

  // A run in place of the old one, or that resumes it, in which this fails. Whether it was refused: then the old one is
  // as it was. Otherwise its last checkpoint is whole.
  bool is_refused(const std::string& fault, const std::string& option, const std::string& below) {
    const Finished result = start("PMAPTRAIN_FAULT=" + fault, option, below);
    INFO(option << " " << fault << ": " << result.status << "\n" << result.err);
    CHECK((result.status == 0 || result.status == 1 || result.status == 4));
    CHECK((result.status == 0) == (pmaptrain::test::contains(result.err, "error: ") == false));
    if (result.status == 4) {
      CHECK(pmaptrain::test::listing(path()) == old_);
    } else if (!run::checkpoint_steps(path()).empty()) {
      CHECK_NOTHROW(run::load_checkpoint(run::find_checkpoint(path(), "last")));
    }
    if (fault.starts_with("thread:"))
      CHECK(result.status != 1);  // without its thread the report is written all the same
    if (fault.starts_with("mmap:") || fault.starts_with("open:")) CHECK(result.status == 4);
    return result.status == 4;
  }

 private:
  Finished start(const std::string& variables, const std::string& option, const std::string& below) {
    fs::remove_all(path());
    fs::copy(folder_ / "old", path(), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    return run_failing("PMAPTRAIN_FAULT_BELOW=" + below + " " + variables,
                       "run " + config_ + " --run-dir " + path() + " --quiet " + option);
  }

  TemporaryFolder folder_;
  std::string data_, config_, old_;
};

}  // namespace

TEST_CASE("a process without threads, open files or mappings is refused, and an old run stays as it was",
          "[app][process]") {
  FailingRuns runs;
  const auto fail_each = [&](const std::string& kind, int error, const std::string& option, const std::string& below) {
    const int count = runs.counts(option, below)[kind];
    INFO(kind);
    CHECK(count > 0);
    int refused = 0;
    for (int n = 1; n <= count; ++n) {
      const std::string fault = kind + ":" + std::to_string(n) + ":" + std::to_string(error);
      refused += runs.is_refused(fault + (n % 2 == 0 ? ":all" : ""), option, below) ? 1 : 0;
    }
    CHECK(refused > 0);
  };
  fail_each("thread", EAGAIN, "--overwrite", "/");
  for (const std::string kind : {"open", "mmap"}) {
    const int error = kind == "open" ? EMFILE : ENOMEM;
    fail_each(kind, error, "--overwrite", runs.data());
    fail_each(kind, error, "--resume", runs.path() + "/checkpoints");
  }
}

TEST_CASE("a process whose disk is full says so, and an old run stays as it was or is replaced", "[app][process]") {
  FailingRuns runs;
  const std::string full = std::to_string(ENOSPC) + ":all";
  CHECK(runs.is_refused("write:1:" + full, "--overwrite", runs.path()));
  for (const int call : {4, 12}) {
    CHECK_FALSE(runs.is_refused("write:" + std::to_string(call) + ":" + full, "--overwrite", runs.path()));
  }
}

TEST_CASE("a thread that cannot be started is named before anything is touched", "[app][process]") {
  const TemporaryFolder folder;
  const auto without = [&](int thread, int status) {
    const Finished result =
        run_failing("PMAPTRAIN_FAULT=thread:" + std::to_string(thread) + ":" + std::to_string(EAGAIN),
                    "run configs/cnn.yaml --workers 3 --set data.source.synthetic_images.test=256 --set "
                    "'model.layers=[flatten, {dense: 32}, {dense: 10}]' --max-steps 1 --run-dir " +
                        (folder / "run"));
    CHECK(result.status == status);
    CHECK(fs::exists(folder / "run") == (status == 0));
    return result.err;
  };
  std::vector<std::string> said;
  for (const int thread : {1, 2, 3, 5, 6, 7}) said.push_back(without(thread, 4));
  const std::string why = " could not be started: Resource temporarily unavailable\n  help: ";
  const std::string fewer = "fewer workers (mesh.workers, --workers) need fewer threads\n";
  const std::string limit = "raise the limit on threads (ulimit -u, the cgroup's pids.max), or end other processes\n";
  const std::vector<std::string> workers = {"error: thread 2 of 3" + why + fewer, "error: thread 3 of 3" + why + fewer};
  const std::string loader = "error: the prefetching thread" + why + limit;
  CHECK(contains(said[0], why));  // the display's
  CHECK(std::vector(said.begin() + 1, said.begin() + 3) == workers);
  CHECK(said[3] == "error: the thread that writes checkpoints" + why + limit);
  // The training's, then the evaluation's.
  CHECK(said[4] == loader);
  CHECK(said[5] == loader);
  // The fourth would draw half of a parameter's initial values, which the first then does.
  without(4, 0);
}

TEST_CASE("without a thread for the test split the data is opened one split after the other", "[app][process]") {
  const TemporaryFolder folder;
  const std::string one("\0\0\0\1", 4);
  const std::string x = folder.write("x", std::string("\0\0\x08\2", 4) + one + one + "a");
  const std::string y = folder.write("y", std::string("\0\0\x08\1", 4) + one + "a");
  const std::string pair = "[" + x + ", " + y + "]";
  const std::string config =
      folder.write("a.yaml", "data: {source: {idx: {train: " + pair + ", test: " + pair +
                                 "}}, batch_size: 1}\nmodel: {layers: [{dense: 100}]}\nloss: softmax_cross_entropy\n"
                                 "optimizer: {adam: {}, learning_rate: 0.1}\ntrain: {duration: 1 step}\n");
  const Finished without =
      run_failing("PMAPTRAIN_FAULT=thread:1:" + std::to_string(EAGAIN), "validate --json " + config);
  INFO(without.err);
  CHECK(without.status == 0);
  CHECK(contains(without.out, "\"test\": 1"));
}

TEST_CASE("a signal before the first step ends the process at once, and an old run stays as it was", "[app][process]") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  REQUIRE(run_binary({"run", linear, "--run-dir", run, "-q"}).status == 0);
  const std::string before = pmaptrain::test::listing(run);
  // Initial values of so many parameters take their time.
  const std::string large = "model.layers=[{dense: 6000}, {dense: 6000}, {dense: 1}]";
  for (const auto& [signal, name] : {std::pair{SIGINT, "run"}, std::pair{SIGTERM, "new"}}) {
    Process process({"run", linear, "--run-dir", folder / name, "--overwrite", "--set", large});
    std::this_thread::sleep_for(std::chrono::milliseconds(150));  // far from its first step
    process.send(signal);
    const Finished result = process.wait();
    INFO(result.err);
    CHECK(result.signal == signal);
    CHECK(result.out.empty());
    CHECK(result.err.empty());
  }
  CHECK(pmaptrain::test::listing(run) == before);
  CHECK_FALSE(fs::exists(folder / "new"));
}
