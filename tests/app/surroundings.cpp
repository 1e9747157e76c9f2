// What the world around a run may do to it: signals, terminals that go away, clocks that jump, disks that fill up, and
// folders that are not ours. Whatever happens, the exit status says it, and nothing half-written is left.
#include <pty.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/app/call.h"
#include "tests/app/process.h"
#include "tests/catch.h"
#include "tests/running.h"

using namespace pmaptrain::tests;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

// A run that takes long enough for something to happen to it.
std::vector<std::string> long_run(const std::string& folder, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{
      "run", "configs/cnn.yaml", "--run-dir", folder, "--set", "data.source.synthetic_images.test=64"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<json> lines_of(const fs::path& file) {
  std::vector<json> lines;
  std::istringstream text(read_text(file));
  for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
  return lines;
}

json summary_of(const std::string& run) { return json::parse(read_text(fs::path(run) / "summary.json")); }

// The one document that --json promises for a failure with this status.
json failure_of(const Finished& result, int status) {
  INFO(result.out << result.err);
  CHECK(result.status == status);
  const json document = json::parse(result.out);
  CHECK(document["exit_status"] == status);
  REQUIRE(document["errors"].size() >= 1);
  for (const json& error : document["errors"]) {
    for (const char* key : {"kind", "file", "line", "column", "message", "help"}) CHECK(error.contains(key));
    CHECK_FALSE(error["message"].get<std::string>().empty());
  }
  return document;
}

// The binary in a terminal of its own, which can be closed.
class InTerminal {
 public:
  InTerminal(std::vector<std::string> arguments, bool ignores_hangup) {
    arguments.insert(arguments.begin(), binary_path());
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = ::forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (pid_ == 0) {
      pmaptrain::test::default_signals();
      if (ignores_hangup) std::signal(SIGHUP, SIG_IGN);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
  }
  ~InTerminal() {
    close();
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  InTerminal(const InTerminal&) = delete;
  InTerminal& operator=(const InTerminal&) = delete;

  // What is typed there.
  void type(char key) const { REQUIRE(::write(terminal_, &key, 1) == 1); }
  void send(int signal) const { ::kill(pid_, signal); }
  // Reads what it shows until `text` is in it; false when it ends before.
  bool wait_for(const std::string& text) {
    std::string shown;
    char bytes[4096];
    while (shown.find(text) == std::string::npos) {
      const ssize_t count = ::read(terminal_, bytes, sizeof bytes);
      if (count <= 0) return false;
      shown.append(bytes, static_cast<std::size_t>(count));
    }
    return true;
  }
  void close() {
    if (terminal_ >= 0) ::close(terminal_);
    terminal_ = -1;
  }
  // As waitpid says it.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }

 private:
  int terminal_ = -1;
  pid_t pid_ = -1;
};

}  // namespace

TEST_CASE("a run whose terminal is closed stops in good order, and under nohup it goes on", "[app][process]") {
  for (const bool nohup : {false, true}) {
    INFO(nohup);
    const TemporaryFolder folder;
    const std::string run = folder / "run";
    InTerminal terminal(long_run(run, {"--max-steps", "12"}), nohup);
    REQUIRE(terminal.wait_for("loss"));
    terminal.close();
    const int status = terminal.wait();
    if (nohup) {
      CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
      CHECK(summary_of(run)["reason"] == "max_steps");
      CHECK(summary_of(run)["steps"] == 12);
    } else {
      CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP));
      CHECK(summary_of(run)["reason"] == "signal");
      CHECK(summary_of(run)["exit_status"] == 128 + SIGHUP);
    }
    CHECK(fs::exists(run + "/checkpoints/last/state.json"));
  }
}

TEST_CASE("a terminal that Ctrl-S stopped stops neither the training nor its end by a signal", "[app][process]") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  InTerminal terminal(
      {"run", linear, "--run-dir", run, "--set", "train={duration: 100000000 epochs, log_every: 1 epoch}"}, false);
  REQUIRE(terminal.wait_for("loss"));
  terminal.type('\x13');
  const auto size = fs::file_size(run + "/metrics.jsonl");
  CHECK(wait_until([&] { return fs::file_size(run + "/metrics.jsonl") > size + 300'000; }));
  const auto begin = std::chrono::steady_clock::now();
  terminal.send(SIGTERM);
  const int status = terminal.wait();
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM));
  CHECK(summary_of(run)["reason"] == "signal");
  CHECK(fs::exists(run + "/checkpoints/last/state.json"));
}

TEST_CASE("a run without standard streams does not write its output into run files", "[app][process]") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  const std::string command = "exec \"$PROGRAM\" run " + linear + " --max-steps 3 --run-dir ";
  // The report went nowhere, which is a failure; the run itself is whole.
  CHECK(run_shell(command + run + " <&- >&- 2>&-").status == 1);
  CHECK(lines_of(run + "/metrics.jsonl").at(0)["event"] == "step");
  CHECK(read_text(run + "/config.yaml") == run_binary({"validate", linear, "--print-config"}).out);
  CHECK(summary_of(run)["steps"] == 3);
  CHECK(summary_of(run)["exit_status"] == 0);
  CHECK(fs::exists(run + "/checkpoints/last/state.json"));

  const Finished lost = run_shell("exec \"$PROGRAM\" --version >&-");
  CHECK(lost.status == 1);
  CHECK(lost.err == "error: standard output could not be written\n");
  CHECK(run_shell(command + (folder / "quiet") + " <&- 2>&-").status == 0);
  // What says nothing there loses nothing.
  CHECK(run_shell("exec \"$PROGRAM\" validate nothing.yaml >&-").status == 2);
}

TEST_CASE("a run needs no HOME and nothing else of its environment", "[app][process]") {
  const TemporaryFolder folder;
  const Finished result =
      run_shell("exec env -i \"$PROGRAM\" run " + linear + " --max-steps 3 --run-dir " + (folder / "run"));
  INFO(result.err);
  CHECK(result.status == 0);
  CHECK(contains(result.out, "stopped at --max-steps after 3 steps"));
}

TEST_CASE("durations do not follow a clock that is set back while the run goes on", "[app][process]") {
  const std::string clock = beside_the_tests("libwrong_clock.so");
  REQUIRE(fs::exists(clock));
  // The clock is wrong indeed: of two dates, the later is the earlier.
  const Finished date = run_shell("LD_PRELOAD=" + clock + " ASAN_OPTIONS=verify_asan_link_order=0 date +%s; date +%s");
  std::istringstream dates(date.out);
  long wrong = 0, right = 0;
  REQUIRE(dates >> wrong >> right);
  CHECK(right - wrong >= 3600);

  const TemporaryFolder folder;
  const std::string run = folder / "run";
  const auto begin = std::chrono::steady_clock::now();
  const Finished result =
      run_shell("LD_PRELOAD=" + clock + " ASAN_OPTIONS=verify_asan_link_order=0 exec \"$PROGRAM\" run " + linear +
                " --json --set 'train.log_every=1 step' --run-dir " + run);
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  INFO(result.err);
  CHECK(result.status == 0);
  const json summary = json::parse(result.out);
  CHECK(summary["seconds"].get<double>() > 0);
  CHECK(summary["seconds"].get<double>() <= elapsed);
  double last = 0;
  for (const json& line : lines_of(run + "/metrics.jsonl")) {
    if (line["event"] != "step") continue;
    CHECK(line["seconds"].get<double>() >= last);
    CHECK(line["examples_per_second"].get<double>() > 0);
    last = line["seconds"];
  }
  CHECK(last > 0);
}

TEST_CASE("a failure of every exit status is one JSON document", "[app][process]") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";

  const std::string small =
      "ulimit -f 4; exec \"$PROGRAM\" run configs/cnn.yaml --max-steps 1 --json --set "
      "data.source.synthetic_images.test=64 --run-dir " +
      (folder / "full");
  const json full = failure_of(run_shell(small), 1);
  CHECK(contains(full["errors"][0]["message"], "params.safetensors' cannot be written: File too large"));
  CHECK(fs::is_empty(folder / "full/checkpoints"));

  CHECK(failure_of(run_binary({"run", linear, "--json", "--set", "seed=x", "--run-dir", run}),
                   2)["errors"][0]["line"] == 1);
  failure_of(run_binary({"run", "configs/fashion_mnist.yaml", "--json", "--set",
                         "data.source.fashion_mnist.dir=/nothing", "--run-dir", run}),
             3);
  failure_of(
      run_binary({"run", "configs/cnn.yaml", "--json", "--set", "model.layers.7.dense=10000000", "--run-dir", run}), 4);
  CHECK_FALSE(fs::exists(run));  // nothing of these began
  failure_of(run_binary({"run", linear, "--json", "--set", "optimizer.learning_rate=1e30", "--run-dir", run}), 5);
  CHECK(summary_of(run)["exit_status"] == 5);
}

TEST_CASE("a second writer in a run folder is refused and disturbs nothing", "[app][process]") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  Process first(long_run(run));
  REQUIRE(first.wait_for("loss"));
  const Finished second = run_binary({"run", linear, "--run-dir", run, "--overwrite", "--json"});
  const json document = failure_of(second, 4);
  CHECK(document["errors"][0]["message"] == "another pmaptrain is writing the run folder '" + run + "'");
  first.send(SIGTERM);
  CHECK(first.wait().signal == SIGTERM);
  CHECK(lines_of(run + "/metrics.jsonl").size() >= 2);
  CHECK(contains(read_text(run + "/config.yaml"), "name: cnn\n"));
  CHECK(fs::exists(run + "/checkpoints/last/state.json"));
}

TEST_CASE("a disk that is really full fails the run, and what was written before is whole", "[app][process][user]") {
  const TemporaryFolder folder;
  const std::string disk = folder / "disk", mounted = folder / "mounted";
  // A file system of 16 KiB in a name space of its own; its files are copied out before it goes. Who is not root may
  // perhaps be that of a name space of users.
  Finished result;
  for (const std::string user : {"", " --user --map-root-user"}) {
    result =
        run_shell("exec unshare" + user + " --mount bash -c 'mkdir -p " + disk +
                  " && mount -t tmpfs -o size=16k none " + disk + " && touch " + mounted +
                  " || exit 99; \"$PROGRAM\" run " + linear + " --set train.tensorboard=false --json --run-dir " +
                  disk + "/run; status=$?; cp -r " + disk + "/run " + folder.path().string() + "/copy; exit $status'");
    if (fs::exists(mounted)) break;
  }
  if (!fs::exists(mounted)) {
    WARN("skipped: no file system can be mounted here (" << result.err
                                                         << "); RLIMIT_FSIZE alone stands for a full disk");
    return;
  }
  const json document = failure_of(result, 1);
  CHECK(contains(document["errors"][0]["message"], "cannot be written: No space left on device"));
  CHECK(document["errors"][0]["help"] == "free some space, or write to another disk");
  CHECK(lines_of(folder / "copy/metrics.jsonl").size() > 1);
  CHECK(fs::is_empty(folder / "copy/checkpoints"));
  CHECK(contains(read_text(folder / "copy/config.yaml"), "name: linear_regression\n"));
  for (const auto& entry : fs::recursive_directory_iterator(folder / "copy")) {
    CHECK_FALSE(entry.path().filename().string().starts_with(".tmp"));
  }
}

TEST_CASE("a program that needs more memory than there is is refused before it takes any", "[app]") {
  const TemporaryFolder folder;
  std::ofstream(folder / "p.pmt") << "mesh a=64\n%x = iota[dtype=f32, shape=[1073741824,64], dim=1]\n"
                                     "%y = pvary[axes={a}] %x\n%z = neg %y\nreturn z = %z\n";
  const Finished result = call({"exec", folder / "p.pmt", "--json"});
  const json error = failure_of(result, 4)["errors"][0];
  CHECK(contains(error["message"], "this program needs "));
  CHECK(contains(error["message"], " TiB of memory, and "));
  CHECK(error["help"] == "use a smaller mesh (--mesh) or smaller values");
}

TEST_CASE("exec reads no program without an end, and writes to a device without replacing it", "[app]") {
  const Finished endless = call({"exec", "/dev/zero"});
  CHECK(endless.status == 2);
  CHECK(endless.err == "/dev/zero: error: the program is too large\n  help: the largest size is 64 MiB\n");
  const TemporaryFolder folder;
  fs::create_symlink("/dev/full", folder / "full");
  const Finished full = call({"exec", "configs/programs/scaled_sum.pmt", "--output", folder / "full", "--json"});
  CHECK(contains(failure_of(full, 1)["errors"][0]["message"], "cannot be written: No space left on device"));
  CHECK(fs::is_symlink(folder / "full"));
  CHECK(call({"exec", "configs/programs/scaled_sum.pmt", "--output", "/dev/null"}).status == 0);
  CHECK(fs::is_character_file("/dev/null"));
}

TEST_CASE("a data file that is cut short under a run ends it as data that is not there", "[app][process]") {
  const TemporaryFolder folder;
  constexpr std::size_t examples = 20000;
  const auto write = [&](const char* name, const std::string& head, std::size_t size) {
    std::ofstream(folder / name, std::ios::binary) << head << std::string(size, '\1');
  };
  const std::string count("\0\0\x4e\x20", 4), side("\0\0\0\x10", 4);
  write("x.idx", std::string("\0\0\x08\3", 4) + count + side + side, examples * 256);
  write("y.idx", std::string("\0\0\x08\1", 4) + count, examples);
  std::ofstream(folder / "long.yaml") << "data: {source: {idx: {train: [x.idx, y.idx]}}, batch_size: 16}\n"
                                         "model: {layers: [flatten, dense: 10]}\n"
                                         "loss: softmax_cross_entropy\n"
                                         "optimizer: {sgd: {}, learning_rate: 0.001}\n"
                                         "train: {duration: 100000 epochs, log_every: 100 steps}\n";
  const std::string run = folder / "run";
  Process process({"run", folder / "long.yaml", "--run-dir", run});
  REQUIRE(process.wait_for("loss"));
  fs::resize_file(folder / "x.idx", 4096);
  const Finished result = process.wait();
  INFO(result.err);
  CHECK(result.signal == 0);
  CHECK(result.status == 3);
  CHECK(contains(result.err, "long.yaml:1:"));
  CHECK(contains(result.err, "x.idx' was truncated during use: it had 5120016 bytes and has 4096"));
  CHECK(summary_of(run)["status"] == "failed");
  CHECK(summary_of(run)["exit_status"] == 3);
  CHECK(summary_of(run)["steps"].get<int>() > 0);
  CHECK(fs::exists(run + "/checkpoints/last/params.safetensors"));
}

TEST_CASE("a data file that is written over in place under a run ends it at the epoch's end, with a checkpoint",
          "[app][process]") {
  const std::string count("\0\0\x03\xe8", 4), side("\0\0\0\x10", 4);  // 1000 images of 16 x 16
  const std::string images = std::string("\0\0\x08\3", 4) + count + side + side + std::string(256'000, '\1');
  const std::string labels = std::string("\0\0\x08\1", 4) + count + std::string(1000, '\1');
  for (const std::string changed : {"train.idx", "test.idx"}) {
    INFO(changed);
    const TemporaryFolder folder;
    for (const char* name : {"train.idx", "test.idx"}) folder.write(name, images);
    for (const char* name : {"train_labels.idx", "test_labels.idx"}) folder.write(name, labels);
    folder.write("long.yaml",
                 "data: {source: {idx: {train: [train.idx, train_labels.idx], test: [test.idx, test_labels.idx]}}, "
                 "batch_size: 8}\n"
                 "model: {layers: [flatten, dense: 10]}\n"
                 "loss: softmax_cross_entropy\n"
                 "optimizer: {sgd: {}, learning_rate: 0.001}\n"
                 "train: {duration: 1000000 epochs, log_every: 1 step, eval_every: never}\n");
    const std::string run = folder / "run";
    Process process({"run", folder / "long.yaml", "--run-dir", run});
    REQUIRE(process.wait_for("loss"));
    // A file that is renamed over the path is another one, and so are labels, which are in memory.
    fs::rename(folder.write("new", images), folder / (changed == "test.idx" ? "train.idx" : "test.idx"));
    folder.write("train_labels.idx", labels);
    REQUIRE(process.wait_for("epoch       5/"));
    std::fstream(folder / changed, std::ios::binary | std::ios::in | std::ios::out) << images;  // not cut short before
    const Finished result = process.wait();
    INFO(result.err);
    CHECK(result.status == 3);
    CHECK(contains(result.err, "long.yaml:1:"));
    CHECK(contains(result.err,
                   changed + "' was modified during use: its modification time has changed since it was opened\n"));
    CHECK(contains(result.err, "  help: write a new file and rename it over the old one"));
    CHECK(summary_of(run)["exit_status"] == 3);
    CHECK(summary_of(run)["steps"].get<int>() % 125 == 0);
    CHECK(fs::exists(run + "/checkpoints/last/params.safetensors"));
  }
}

TEST_CASE("a bus error that is not a file's ends a run by its signal", "[app][process]") {
  const TemporaryFolder folder;
  Process running(long_run(folder / "run"));
  REQUIRE(running.wait_for("loss"));
  running.send(SIGBUS);
  const Finished result = running.wait();
  CHECK((result.signal == SIGBUS || contains(result.err, "AddressSanitizer")));
}

TEST_CASE("a config in a folder whose name has the reserved characters makes a run folder that can be read",
          "[app][process]") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "a ${b}");
  const std::string count("\0\0\0\x08", 4), side("\0\0\0\x02", 4);  // 8 images of 2 x 2
  const std::string images = std::string("\0\0\x08\3", 4) + count + side + side + std::string(32, '\1');
  const std::string labels = std::string("\0\0\x08\1", 4) + count + std::string(8, '\1');
  folder.write("a ${b}/x.idx", images);
  folder.write("a ${b}/y.idx", labels);
  const std::string config = folder.write(
      "a ${b}/${c}.yaml",
      "data: {source: {idx: {train: [x.idx, y.idx]}}, batch_size: 8}\nmodel: {layers: [flatten, dense: 2]}\n"
      "loss: softmax_cross_entropy\noptimizer: {sgd: {}, learning_rate: 0.1}\ntrain: {duration: 1 epoch}\n");
  const std::string run = folder / "a ${b}/run";
  const Finished trained = run_binary({"run", config, "--run-dir", run, "-q"});
  INFO(trained.err);
  CHECK(trained.status == 0);
  CHECK(contains(read_text(run + "/config.yaml"), "name: \"\\x24{c}\"\n"));
  CHECK(run_binary({"validate", run}).status == 0);
  CHECK(run_binary({"validate", run, "--print-config"}).out == read_text(run + "/config.yaml"));
  const Finished evaluated = run_binary({"eval", run, "--split", "train"});
  INFO(evaluated.err);
  CHECK(evaluated.status == 0);
}

TEST_CASE("a pipe in the place of a run folder's config is refused, and nobody waits for its writer", "[app]") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "config.yaml").c_str(), 0600) == 0);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"eval", folder.path().string()}, {"run", folder.path().string(), "--resume"}}) {
    const Finished result = call(arguments);
    CHECK(result.status == 2);
    CHECK(result.err ==
          folder / "config.yaml" + ": error: this is no regular file\n  help: a run folder has its config in it\n");
  }
}
