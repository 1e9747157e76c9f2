// Every call of the system that a run makes in its folders fails once, and from some moment on for ever. Whatever
// fails, the exit status says it, a checkpoint is whole or not there, an old run is as it was or replaced, and nothing
// else is touched.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <thread>

#include "core/train/checkpoint.h"
#include "core/train/npy.h"
#include "tests/app/process.h"
#include "tests/catch.h"

using namespace pmaptrain::tests;
using nlohmann::json;
namespace fs = std::filesystem;
namespace train = pmaptrain::train;

namespace {

struct Fault {
  std::string kind;
  int error;
};

const std::vector<Fault> faults = {{"open", EMFILE},   {"write", ENOSPC},   {"fsync", EIO},
                                   {"rename", ENOSPC}, {"mkdir", ENOSPC},   {"mmap", ENOMEM},
                                   {"thread", EAGAIN}, {"symlink", ENOSPC}, {"unlink", EIO}};

constexpr int steps = 6;

// A folder with data, a config, a run that is to be left alone, and in it a run that is begun anew each time.
class Place {
 public:
  Place() {
    train::Tensors arrays;
    for (const auto& [name, rows] : {std::pair{"train", 12}, std::pair{"test", 5}}) {
      std::vector<float> numbers;
      for (int i = 0; i < rows * 2; ++i) numbers.push_back(0.1F * static_cast<float>(i % 7));
      const auto tensor = [&](std::size_t count, pmaptrain::Shape shape) {
        const auto bytes = std::as_bytes(std::span(numbers).first(count));
        return train::Tensor{pmaptrain::DType::f32, std::move(shape), {bytes.begin(), bytes.end()}};
      };
      arrays[std::string("x_") + name] = tensor(numbers.size(), {rows, 2});
      arrays[std::string("y_") + name] = tensor(static_cast<std::size_t>(rows), {rows, 1});
    }
    train::write_npz(folder_ / "data.npz", arrays);
    config_ = folder_.write("config.yaml",
                            "mesh: {axes: {devices: 2}, workers: 2}\n"
                            "data:\n"
                            "  source: {npz: {file: data.npz, train: [x_train, y_train], test: [x_test, y_test]}}\n"
                            "  batch_size: 4\n"
                            "model: {layers: [{dense: 3}, relu, {dense: 1}]}\n"
                            "loss: mean_squared_error\n"
                            "optimizer: {adam: {}, learning_rate: 0.01}\n"
                            "train: {duration: 6 steps, log_every: 2 steps, eval_every: 1 epoch}\n");
    REQUIRE(run("neighbour", "", {}).status == 0);
    REQUIRE(run("first", "", {"--seed", "1", "--max-steps", "3"}).status == 0);
    folder_.write("first/notes.txt", "somebody's own");
    neighbour_ = pmaptrain::test::listing(folder_ / "neighbour");
    old_ = pmaptrain::test::listing(folder_ / "first");
    begin_with(false);
    const Finished all = run("run", "PMAPTRAIN_FAULT_COUNTS=" + (folder_ / "counts"), {});
    REQUIRE(all.status == 0);
    whole_ = kept_of("run");
  }

  // How often a run of this kind calls what can fail.
  std::map<std::string, int> counts(bool overwrite) {
    begin_with(overwrite);
    REQUIRE(run("run", "PMAPTRAIN_FAULT_COUNTS=" + (folder_ / "counts"), options(overwrite)).status == 0);
    std::map<std::string, int> counts;
    std::istringstream text(read_text(folder_ / "counts"));
    std::string kind;
    for (int count = 0; text >> kind >> count;) counts[kind] = count;
    return counts;
  }

  // Begins a run in which one call fails, or all from that one on.
  void start(const Fault& fault, int call, bool ever_after, bool overwrite) {
    fault_ = fault;
    ever_after_ = ever_after;
    overwrite_ = overwrite;
    words_ = fault.kind + ":" + std::to_string(call) + ":" + std::to_string(fault.error) + (ever_after ? ":all" : "");
    begin_with(overwrite);
    process_.emplace(command("run", "PMAPTRAIN_FAULT=" + words_, options(overwrite)));
  }

  // Looks at what it has left, if there is one.
  void check() {
    if (!process_) return;
    const Finished result = process_->wait();
    process_.reset();
    INFO((overwrite_ ? "--overwrite, " : "")
         << words_ << " (" << std::strerror(fault_.error) << "): " << result.status << "\n"
         << result.err << result.out);
    const std::string run_folder = folder_ / "run";
    CHECK(result.signal == 0);
    CHECK((result.status == 0 || result.status == 1 || result.status == 4));
    if (fault_.kind == "mmap") CHECK(result.status == 4);
    if (fault_.kind == "thread") CHECK(result.status != 1);  // without its thread the report is written all the same
    CHECK(pmaptrain::test::listing(folder_ / "neighbour") == neighbour_);
    if (overwrite_) CHECK(read_text(run_folder + "/notes.txt") == "somebody's own");
    if (result.status != 0) CHECK(contains(result.err, "error: "));
    if (result.status == 4) {  // refused: nothing was touched
      if (overwrite_ && fault_.kind == "rename" && ever_after_) {
        // What was put aside cannot come back, but nothing of it is removed.
        CHECK(fs::file_size(run_folder + "/config.yaml") > 0);
        CHECK(pmaptrain::test::listing(run_folder).size() >= old_.size());
      } else if (overwrite_) {
        CHECK(pmaptrain::test::listing(run_folder) == old_);
      } else {
        CHECK_FALSE(fs::exists(run_folder));
      }
      return;
    }
    // It has begun, and says so by its config; of an old run nothing is left to be taken for this one's.
    CHECK(contains(read_text(run_folder + "/config.yaml"), "seed: 0\n"));
    check_checkpoints(run_folder, result.status == 0);
    if (result.status == 0) {
      CHECK(kept_of("run") == whole_);
      CHECK(json::parse(read_text(run_folder + "/summary.json"))["exit_status"] == 0);
    } else if (!ever_after_ && fs::exists(run_folder + "/summary.json")) {
      CHECK(json::parse(read_text(run_folder + "/summary.json"))["exit_status"] == 1);
    }
    // What cannot be opened or removed cannot be tidied up, but the next run does it.
    if (has_temporary(run_folder)) {
      CHECK((fault_.kind == "unlink" || fault_.kind == "open"));
      CHECK(run("run", "", {"--overwrite"}).status == 0);
      CHECK_FALSE(has_temporary(run_folder));
    }
  }

 private:
  static std::vector<std::string> options(bool overwrite) {
    return overwrite ? std::vector<std::string>{"--overwrite"} : std::vector<std::string>{};
  }

  static bool has_temporary(const std::string& run) {
    const fs::recursive_directory_iterator entries(run);
    return std::any_of(fs::begin(entries), fs::end(entries), [](const fs::directory_entry& entry) {
      return entry.path().filename().string().starts_with(".tmp");
    });
  }

  void begin_with(bool overwrite) {
    fs::remove_all(folder_ / "run");
    if (overwrite)
      fs::copy(folder_ / "first", folder_ / "run", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  }

  Shell command(const std::string& name, const std::string& environment, const std::vector<std::string>& more) {
    std::string command = environment;
    if (!environment.empty()) {
      command += " PMAPTRAIN_FAULT_BELOW=" + folder_.path().string() +
                 "/ LD_PRELOAD=" + fs::path(PMAPTRAIN_FAULTS).string() + " ASAN_OPTIONS=verify_asan_link_order=0";
    }
    command += " exec \"$PROGRAM\" run " + config_ + " --run-dir " + (folder_ / name) + " --progress plain";
    for (const std::string& word : more) command += " " + word;
    return {command};
  }
  Finished run(const std::string& name, const std::string& environment, const std::vector<std::string>& more) {
    return Process(command(name, environment, more)).wait();
  }

  // What a whole run leaves, without times: its parameters, its lines and its config.
  std::string kept_of(const std::string& name) const {
    const std::string run = folder_ / name;
    std::string kept = read_text(run + "/checkpoints/last/params.safetensors") + read_text(run + "/config.yaml");
    std::istringstream lines(read_text(run + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      json object = json::parse(line);
      object.erase("seconds");
      object.erase("examples_per_second");
      kept += object.dump() + "\n";
    }
    return kept;
  }

  static void check_checkpoints(const std::string& run, bool done) {
    if (!fs::exists(run + "/checkpoints")) {
      CHECK_FALSE(done);
      return;
    }
    for (const auto& entry : fs::directory_iterator(run + "/checkpoints")) {
      INFO(entry.path());
      if (entry.path().filename().string().starts_with(".")) continue;
      CHECK((entry.is_symlink() || entry.path().filename() == train::checkpoint_name(steps)));
      CHECK_NOTHROW(train::load_parameters(entry.path()));
      const std::string optimizer = read_text(entry.path() / "optimizer.safetensors");
      const json state = json::parse(read_text(entry.path() / "state.json"));
      CHECK(state["checksums"]["optimizer.safetensors"] ==
            "xxh3:" + train::hash_hex(std::as_bytes(std::span(optimizer))));
    }
    if (!done) return;
    CHECK(fs::read_symlink(run + "/checkpoints/last") == train::checkpoint_name(steps));
  }

  TemporaryFolder folder_;
  std::string config_, neighbour_, old_, whole_;

  // The run that goes on.
  std::optional<Process> process_;
  Fault fault_;
  std::string words_;
  bool ever_after_ = false, overwrite_ = false;
};

}  // namespace

TEST_CASE("whatever call of the system fails, a run ends as it says and loses nothing that was there", "[app]") {
  std::array<Place, 2> places;  // one runs while what the other has left is looked at
  std::size_t turn = 0;
  for (const bool overwrite : {false, true}) {
    std::map<std::string, int> counts = places[0].counts(overwrite);
    for (const Fault& fault : faults) {
      INFO(fault.kind);
      if (fault.kind != "unlink" || overwrite) CHECK(counts[fault.kind] > 0);
      for (int call = 1; call <= counts[fault.kind]; ++call) {
        for (const bool ever_after : {false, true}) {
          Place& place = places[turn++ % places.size()];
          place.check();
          place.start(fault, call, ever_after, overwrite);
        }
      }
    }
    for (Place& place : places) place.check();
  }
}

TEST_CASE("a thread that cannot be started is named before anything is touched", "[app]") {
  const TemporaryFolder folder;
  const auto without = [&](int thread, int status) {
    const Finished result =
        run_shell("PMAPTRAIN_FAULT=thread:" + std::to_string(thread) + ":" + std::to_string(EAGAIN) +
                  " LD_PRELOAD=" + fs::path(PMAPTRAIN_FAULTS).string() +
                  " ASAN_OPTIONS=verify_asan_link_order=0 exec \"$PROGRAM\" run " +
                  "configs/cnn.yaml --workers 3 --set data.source.synthetic_images.test=256 --max-steps 1 --run-dir " +
                  (folder / "run"));
    CHECK(result.status == status);
    CHECK(fs::exists(folder / "run") == (status == 0));
    return result.err;
  };
  std::vector<std::string> said;
  for (const int thread : {1, 2, 3, 4, 6, 7}) said.push_back(without(thread, 4));
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
  // The fifth would draw half of a parameter's initial values, which the first then does.
  without(5, 0);
}

TEST_CASE("without a thread for the test split the data is opened one split after the other", "[app]") {
  const TemporaryFolder folder;
  const std::string one("\0\0\0\1", 4);
  const std::string x = folder.write("x", std::string("\0\0\x08\2", 4) + one + one + "a");
  const std::string y = folder.write("y", std::string("\0\0\x08\1", 4) + one + "a");
  const std::string pair = "[" + x + ", " + y + "]";
  const std::string config =
      folder.write("a.yaml", "data: {source: {idx: {train: " + pair + ", test: " + pair +
                                 "}}, batch_size: 1}\nmodel: {layers: [{dense: 100}]}\nloss: softmax_cross_entropy\n"
                                 "optimizer: {adam: {}, learning_rate: 0.1}\ntrain: {duration: 1 step}\n");
  const auto validated = [&](const std::string& faults) {
    return run_shell(faults + " LD_PRELOAD=" + fs::path(PMAPTRAIN_FAULTS).string() +
                     " ASAN_OPTIONS=verify_asan_link_order=0 exec \"$PROGRAM\" validate --json " + config);
  };
  const Finished without = validated("PMAPTRAIN_FAULT=thread:1:" + std::to_string(EAGAIN));
  INFO(without.err);
  CHECK(without.status == 0);
  CHECK(contains(without.out, "\"test\": 1"));
}

TEST_CASE("a signal before the first step ends the process at once, and an old run stays as it was", "[app]") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  REQUIRE(run_binary({"run", linear, "--run-dir", run, "-q"}).status == 0);
  const std::string before = pmaptrain::test::listing(run);
  // Initial values of so many parameters take their time.
  const std::string large = "model.layers=[{dense: 6000}, {dense: 6000}, {dense: 1}]";
  for (const int signal : {SIGINT, SIGTERM}) {
    for (const std::string& name : {std::string("run"), std::string("new")}) {
      Process process({"run", linear, "--run-dir", folder / name, "--overwrite", "--set", large});
      std::this_thread::sleep_for(std::chrono::milliseconds(150));  // far from its first step
      process.send(signal);
      const Finished result = process.wait();
      INFO(result.err);
      CHECK(result.signal == signal);
      CHECK(result.out.empty());
      CHECK(result.err.empty());
    }
  }
  CHECK(pmaptrain::test::listing(run) == before);
  CHECK_FALSE(fs::exists(folder / "new"));
}
