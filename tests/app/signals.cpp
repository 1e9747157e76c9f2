// Signals that end a run, and readers of its output who do not read: neither keeps the other from its due.
#include "app/signals.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/app/process.h"
#include "tests/catch.h"
#include "tests/running.h"
#include "tests/slice.h"

using namespace pmaptrain::tests;
using nlohmann::json;
namespace fs = std::filesystem;
using std::chrono::milliseconds;

namespace {

// Its steps are short, and there are more than anybody waits for.
std::vector<std::string> endless(const std::string& run, const std::string& log_every) {
  return {"run", linear, "--run-dir", run, "--set", "train={duration: 100000000 epochs, log_every: " + log_every + "}"};
}

json summary(const std::string& run) { return json::parse(read_text(fs::path(run) / "summary.json")); }

void sleep(int ms) { std::this_thread::sleep_for(milliseconds(ms)); }

// A pipe that nobody reads, and that is full from the start.
class UnreadPipe {
 public:
  UnreadPipe() {
    REQUIRE(::pipe2(ends_, O_CLOEXEC) == 0);
    REQUIRE(::fcntl(ends_[1], F_SETPIPE_SZ, 4096) == 4096);
    REQUIRE(::write(ends_[1], std::string(4096, '#').data(), 4096) == 4096);
  }
  ~UnreadPipe() {
    ::close(ends_[0]);
    if (ends_[1] >= 0) ::close(ends_[1]);
  }
  UnreadPipe(const UnreadPipe&) = delete;
  UnreadPipe& operator=(const UnreadPipe&) = delete;
  int fd() const { return ends_[1]; }
  // What the others with this descriptor write until they are gone.
  std::string read_all() {
    ::close(std::exchange(ends_[1], -1));
    std::string text;
    char bytes[4096];
    for (ssize_t count; (count = ::read(ends_[0], bytes, sizeof bytes)) > 0;) {
      text.append(bytes, static_cast<std::size_t>(count));
    }
    return text.substr(4096);
  }

 private:
  int ends_[2] = {-1, -1};
};

// How a process ends that does this; as waitpid says it.
template <class F>
int ending_of(F&& action) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    pmaptrain::test::default_signals();
    action();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

}  // namespace

TEST_CASE("signals within a second of the first are the same request, and a later one ends the process", "[app]") {
  const int within = ending_of([] {
    const pmaptrain::app::StopSignals signals;
    ::raise(SIGTERM);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::raise(signal);
    ::_exit(*pmaptrain::app::StopSignals::flag());
  });
  CHECK((WIFEXITED(within) && WEXITSTATUS(within) == SIGTERM));
  const int later = ending_of([] {
    const pmaptrain::app::StopSignals signals;
    ::raise(SIGTERM);
    sleep(1050);
    ::raise(SIGINT);
  });
  CHECK((WIFSIGNALED(later) && WTERMSIG(later) == SIGINT));
  // Where one came, the process is still to end by it.
  const int after = ending_of([] {
    {
      const pmaptrain::app::StopSignals signals;
      ::raise(SIGHUP);
    }
    ::raise(SIGTERM);
    pmaptrain::app::raise_by_default(*pmaptrain::app::stop_flag());
  });
  CHECK((WIFSIGNALED(after) && WTERMSIG(after) == SIGHUP));
}

TEST_CASE("a signal in a long step is told at once, with what another one does", "[app][process]") {
  for (const auto& [signal, another] : {std::pair{SIGINT, "press Ctrl-C again to end at once"},
                                        std::pair{SIGTERM, "another signal ends the run at once"}}) {
    const TemporaryFolder folder;
    Process process({"run", "configs/cnn.yaml", "--run-dir", folder / "run", "--set", "data.batch_size=512", "--set",
                     "data.source.synthetic_images={height: 32, width: 32, train: 2048, test: 0}"});
    REQUIRE(process.wait_for("loss"));  // of the first step; the second goes on
    process.send(signal);
    const Finished result = process.wait();
    CHECK(result.signal == signal);
    const std::string told = std::string("stopping after this step, with a checkpoint; ") + another + "\n";
    CHECK(contains(result.err, told));
    CHECK(result.err.find(told) == result.err.rfind("stopping"));
    CHECK(result.err.find(told) < result.err.find("saved after step"));
  }
}

TEST_CASE("a run that a guard stops ends with its status, also where a signal made it look", "[app][process]") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  // A parameter is not finite after some twenty steps, and nothing looks before the signal comes.
  const std::string config =
      folder.write("diverging.yaml",
                   "mesh: {axes: {devices: 1}}\n"
                   "data: {source: {synthetic_linear: {features: 1, examples_per_device: 3000000}}, batch_size: 1}\n"
                   "model: {layers: [dense: 1]}\nloss: mean_squared_error\n"
                   "optimizer: {sgd: {}, learning_rate: 100.0}\ntrain: {duration: 9 epochs, log_every: never}\n");
  Process process({"run", config, "--run-dir", run});
  REQUIRE(process.wait_for("loss"));
  sleep(20);
  process.send(SIGTERM);
  const Finished result = process.wait();
  CHECK(result.signal == 0);
  CHECK(result.status == 5);
  CHECK(summary(run)["reason"] == "guard");
  CHECK(summary(run)["exit_status"] == 5);
}

TEST_CASE("two signals in quick succession end a run by the first, with a checkpoint and the report",
          "[app][process]") {
  for (const std::uint32_t round : pmaptrain::test::some_seeds(2, 20, 4)) {
    const int i = static_cast<int>(round);
    INFO(i);
    const TemporaryFolder folder;
    const std::string run = folder / "run";
    Process process(endless(run, "never"));
    REQUIRE(process.wait_for("loss"));
    process.send(SIGTERM);
    if (i > 0) {  // two signals that wait together are delivered in an order of the system's
      REQUIRE(process.wait_for_delivery(SIGTERM));
      sleep(i / 2);
    }
    process.send(i > 0 ? SIGINT : SIGTERM);
    const Finished result = process.wait();
    CHECK(result.signal == SIGTERM);
    CHECK(contains(result.out, "stopped by a signal"));
    CHECK(summary(run)["exit_status"] == 128 + SIGTERM);
    CHECK(fs::exists(run + "/checkpoints/last/params.safetensors"));
  }
}

TEST_CASE("timeout, which signals its child and then the child's group, ends a run in good order", "[app][process]") {
  for (const std::uint32_t i : pmaptrain::test::some_seeds(2, 10, 4)) {
    INFO(i);
    const TemporaryFolder folder;
    const std::string run = folder / "run";
    const bool by_time = i == 0;
    Process process(Shell{std::string("exec timeout ") + (by_time ? "1" : "60") + " \"$PROGRAM\" run " + linear +
                          " --run-dir " + run + " --set train.duration='100000000 epochs'"});
    REQUIRE(process.wait_for("loss"));
    if (!by_time) process.send(SIGTERM);  // it passes this on as it does its own
    const Finished result = process.wait();
    CHECK((by_time ? result.status == 124 : result.signal == SIGTERM || result.status == 128 + SIGTERM));
    CHECK(contains(result.out, "stopped by a signal"));
    CHECK(summary(run)["exit_status"] == 128 + SIGTERM);
    CHECK(fs::exists(run + "/checkpoints/last/params.safetensors"));
  }
}

TEST_CASE("a second signal more than a second later ends a run at once, with no half of a checkpoint",
          "[app][process]") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  // A step takes so long that the first signal comes well before its end; then the process is held for a second.
  Process process({"run", "configs/cnn.yaml", "--run-dir", run, "--workers", "1", "--set", "data.batch_size=6144",
                   "--set", "data.source.synthetic_images.test=64"});
  REQUIRE(process.wait_for("loss"));
  process.send(SIGTERM);
  REQUIRE(process.wait_for_delivery(SIGTERM));
  sleep(20);
  process.send(SIGSTOP);
  sleep(1050);
  process.send(SIGINT);
  process.send(SIGCONT);
  const Finished result = process.wait();
  CHECK(result.signal == SIGINT);
  CHECK(result.out.empty());
  CHECK_FALSE(fs::exists(run + "/summary.json"));
  CHECK_FALSE(fs::exists(run + "/checkpoints/last"));
  std::istringstream metrics(read_text(run + "/metrics.jsonl"));
  for (std::string line; std::getline(metrics, line);) CHECK(json::accept(line));  // whole lines
  // What a dead process leaves does not hold the folder.
  CHECK(run_binary({"run", linear, "--run-dir", run, "--overwrite", "-q"}).status == 0);
}

TEST_CASE("blocked output stops neither the training nor its end by a signal", "[app][process]") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  UnreadPipe pipe;
  Process process(endless(run, "1 epoch"), Onto{pipe.fd(), pipe.fd()});
  const std::string metrics = run + "/metrics.jsonl";
  CHECK(wait_until([&] { return fs::exists(metrics) && fs::file_size(metrics) > 1'000'000; }));
  process.send(SIGTERM);
  const auto begin = std::chrono::steady_clock::now();
  CHECK(process.wait().signal == SIGTERM);
  CHECK(std::chrono::steady_clock::now() - begin < milliseconds(5000));  // 1 s and what a busy machine adds
  CHECK(summary(run)["reason"] == "signal");
  CHECK(fs::exists(run + "/checkpoints/last/params.safetensors"));
  // What was dropped on the way to the terminal is in the log.
  std::size_t lines = 0;
  for (const char c : read_text(run + "/log.txt")) lines += c == '\n' ? 1 : 0;
  CHECK(lines > summary(run)["steps"].get<std::size_t>());
}

TEST_CASE("without a signal, the end waits until all lines have been read, in order", "[app][process]") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  UnreadPipe pipe;
  Process process({"run", linear, "--run-dir", run, "--set", "train={duration: 500 epochs, log_every: 1 epoch}"},
                  Onto{-1, pipe.fd()});
  REQUIRE(wait_until([&] { return fs::exists(run + "/summary.json"); }));
  sleep(200);
  CHECK(process.running());
  const std::string shown = pipe.read_all();
  CHECK(process.wait().status == 0);
  CHECK(contains(shown, "step   1/500 "));
  CHECK(contains(shown, "step 500/500 "));
  CHECK(read_text(run + "/log.txt").starts_with(shown));
}

TEST_CASE("the end waits for an unread report until a signal arrives", "[app][process]") {
  for (const bool as_json : {false, true}) {
    INFO(as_json);
    const TemporaryFolder folder;
    const std::string run = folder / "run";
    UnreadPipe pipe;
    std::vector<std::string> arguments{"run", linear, "--run-dir", run};
    if (as_json) arguments.emplace_back("--json");
    Process process(arguments, Onto{pipe.fd(), -1});
    REQUIRE(wait_until([&] { return fs::exists(run + "/summary.json"); }));
    sleep(100);
    CHECK(process.running());
    process.send(SIGTERM);
    const auto begin = std::chrono::steady_clock::now();
    CHECK(process.wait().signal == SIGTERM);
    CHECK(std::chrono::steady_clock::now() - begin < milliseconds(5000));
    CHECK(summary(run)["exit_status"] == 0);
  }
}

TEST_CASE("an unread error does not delay the end by a signal", "[app][process]") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  UnreadPipe pipe;
  // The checkpoint cannot be written, so what a signal ends is a failure.
  Process process(Shell{"ulimit -f 4; exec \"$PROGRAM\" run configs/cnn.yaml --set "
                        "data.source.synthetic_images.test=64 --run-dir " +
                        run},
                  Onto{-1, pipe.fd()});
  REQUIRE(wait_until([&] { return contains(read_text(run + "/metrics.jsonl"), "loss"); }));
  process.send(SIGTERM);
  const auto begin = std::chrono::steady_clock::now();
  const Finished result = process.wait();
  CHECK(result.status == 1);
  CHECK(std::chrono::steady_clock::now() - begin < milliseconds(10000));
}

TEST_CASE("a run that is process 1 of a container ends by a signal with an unread report", "[app][process]") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  UnreadPipe pipe;
  Process process(Shell{"unshare --pid --fork true 2>/dev/null || exit 99; unshare --pid --fork \"$PROGRAM\" run "
                        "configs/cnn.yaml --set data.source.synthetic_images.test=64 --run-dir " +
                        run + " & outside=$!; until grep -q loss " + run +
                        "/metrics.jsonl 2>/dev/null; do sleep 0.02; done; kill -TERM $(cat "
                        "/proc/$outside/task/$outside/children); wait $outside"},
                  Onto{pipe.fd(), -1});
  const auto begin = std::chrono::steady_clock::now();
  const Finished result = process.wait();
  if (result.status == 99) {
    WARN("skipped: no process may be given a name space of its own here");
    return;
  }
  INFO(result.err);
  CHECK(result.status == 128 + SIGTERM);
  CHECK(summary(run)["exit_status"] == 128 + SIGTERM);
  CHECK(std::chrono::steady_clock::now() - begin < milliseconds(20000));
}
