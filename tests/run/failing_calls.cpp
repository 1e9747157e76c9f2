// Every call by which a run changes its folder fails: once, and from some moment on for ever. Whatever fails, the exit
// status says it, a checkpoint is whole or not there, an old run is as it was or replaced, a stopped run continues to
// the same end, and nothing else is touched.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/run/checkpoint.h"
#include "core/run/files/npy.h"
#include "tests/app/call.h"
#include "tests/catch.h"
#include "tests/run/test_file_systems.h"
#include "tests/session_run.h"
#include "tests/slice.h"
#include "tests/train/long_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using nlohmann::json;
using test::contains;
using tests::Finished;
namespace fs = std::filesystem;

namespace {

// How a run begins: in a folder of its own, in place of another one, or where one has stopped at step 3.
enum class Begins : std::uint8_t { anew, overwriting, resuming };

struct Failure {
  Call call;
  int error;
  bool may_leave_temporaries = false;  // what cannot be opened or removed cannot be tidied up
};
constexpr Failure failures[] = {
    {Call::open, EMFILE, true}, {Call::write, ENOSPC},          {Call::truncate, EIO},
    {Call::flush, EIO},         {Call::close, ENOSPC},          {Call::rename, ENOSPC},
    {Call::link, ENOSPC},       {Call::make_directory, ENOSPC}, {Call::remove, EIO, true},
};

constexpr std::int64_t steps = 6, stopped_at = 3;

bool has_temporary(const fs::path& run) {
  const fs::recursive_directory_iterator entries(run);
  return std::any_of(fs::begin(entries), fs::end(entries), [](const fs::directory_entry& entry) {
    return entry.path().filename().string().starts_with(".tmp");
  });
}

// A folder with data, a config, a run that is to be left alone, and in it a run that is begun again and again.
class RepeatedRun {
 public:
  explicit RepeatedRun(Begins begins) : begins_(begins) {
    run::Tensors arrays;
    for (const auto& [name, rows] : {std::pair{"train", 12}, std::pair{"test", 5}}) {
      std::vector<float> numbers;
      for (int i = 0; i < rows * 2; ++i) numbers.push_back(0.1F * static_cast<float>(i % 7));
      const auto tensor = [&](std::size_t count, Shape shape) {
        const auto bytes = std::as_bytes(std::span(numbers).first(count));
        return run::Tensor{DType::f32, std::move(shape), {bytes.begin(), bytes.end()}};
      };
      arrays[std::string("x_") + name] = tensor(numbers.size(), {rows, 2});
      arrays[std::string("y_") + name] = tensor(static_cast<std::size_t>(rows), {rows, 1});
    }
    run::write_npz(folder_ / "data.npz", arrays);
    config_ = folder_.write("config.yaml",
                            "mesh: {axes: {devices: 2}, workers: 1}\n"
                            "data:\n"
                            "  source: {npz: {file: data.npz, train: [x_train, y_train], test: [x_test, y_test]}}\n"
                            "  batch_size: 4\n"
                            "model: {layers: [{dense: 1}]}\n"
                            "loss: mean_squared_error\n"
                            "optimizer: {adam: {}, learning_rate: 0.01}\n"
                            "train: {duration: 6 steps, log_every: 2 steps, eval_every: 1 epoch, "
                            "checkpoint: {every: 4 steps}}\n");
    REQUIRE(run("neighbour", {}).status == 0);
    REQUIRE(run("whole", {}).status == 0);
    const char* const seed = begins == Begins::resuming ? "0" : "1";
    REQUIRE(run("old", {"--seed", seed, "--max-steps", std::to_string(stopped_at)}).status == 0);
    folder_.write("old/notes.txt", "somebody's own");
    neighbour_ = test::listing(folder_ / "neighbour");
    old_ = test::listing(folder_ / "old");
    whole_ = kept_of("whole");
  }

  // A run on this file system, and what it says.
  Finished run_on(run::FileSystem& file_system) {
    fs::remove_all(path());
    if (begins_ != Begins::anew) {
      fs::copy(folder_ / "old", path(), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    }
    const run::InstalledFileSystem installed(file_system);
    return run("run", options());
  }

  // Looks at what it has left, where this failed.
  void check(const Finished& result, const Failure& failure, const Fault& fault) {
    INFO((begins_ == Begins::anew ? "" : options().front() + ", ")
         << to_string(fault.call) << " " << fault.number << (fault.ever_after ? " and all after it" : "")
         << (fault.torn ? ", after half a write" : "") << " (" << std::strerror(fault.error) << "): " << result.status
         << "\n"
         << result.err << result.out);
    CHECK((result.status == 0 || result.status == 1 || result.status == 4));
    CHECK(test::listing(folder_ / "neighbour") == neighbour_);
    if (begins_ != Begins::anew) CHECK(read_text(path() + "/notes.txt") == "somebody's own");
    if (result.status != 0) CHECK(contains(result.err, "error: "));
    if (result.status == 4) {
      check_refused(fault);
    } else {
      check_begun(result.status, failure, fault);
    }
    if (begins_ == Begins::resuming && result.status != 0) {  // whatever happened, the run goes on
      CHECK(run("run", options()).status == 0);
      CHECK(kept_of("run") == whole_);
      CHECK_FALSE(has_temporary(path()));
    }
  }

  // That the run is as if nothing had failed.
  void check_whole(const Finished& result) {
    INFO(result.err);
    CHECK(result.status == 0);
    CHECK(kept_of("run") == whole_);
    check_checkpoints(true);
  }

 private:
  std::string path() const { return folder_ / "run"; }

  std::vector<std::string> options() const {
    if (begins_ == Begins::anew) return {};
    return {begins_ == Begins::overwriting ? "--overwrite" : "--resume"};
  }

  Finished run(const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"run", config_, "--run-dir", folder_ / name, "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return tests::call_with_display(arguments);
  }

  // Nothing was touched.
  void check_refused(const Fault& fault) {
    if (begins_ == Begins::anew) {
      CHECK_FALSE(fs::exists(path()));
    } else if (begins_ == Begins::resuming) {
      CHECK_NOTHROW(run::load_checkpoint(path() + "/checkpoints/" + run::checkpoint_name(stopped_at)));
    } else if (fault.call == Call::rename && fault.ever_after) {
      // What was put aside cannot come back, but nothing of it is removed.
      CHECK(fs::file_size(path() + "/config.yaml") > 0);
      CHECK(test::listing(path()).size() >= old_.size());
    } else {
      CHECK(test::listing(path()) == old_);
    }
  }

  // It has begun, and says so by its config; of an old run nothing is left to be taken for this one's.
  void check_begun(int status, const Failure& failure, const Fault& fault) {
    CHECK(contains(read_text(path() + "/config.yaml"), "seed: 0\n"));
    check_checkpoints(status == 0);
    const std::string summary = path() + "/summary.json", metrics = read_text(path() + "/metrics.jsonl");
    CHECK((metrics.empty() || metrics.ends_with("}\n")));  // half a line is taken back
    if (status == 0) {
      CHECK(kept_of("run") == whole_);
      CHECK(json::parse(read_text(summary))["exit_status"] == 0);
    } else if (!fault.ever_after && fs::exists(summary)) {
      CHECK(json::parse(read_text(summary))["exit_status"] == 1);
    }
    if (!has_temporary(path())) return;
    CHECK(failure.may_leave_temporaries);
    if (begins_ == Begins::resuming && status != 0) return;  // it goes on
    CHECK(run("run", {"--overwrite"}).status == 0);
    CHECK_FALSE(has_temporary(path()));
  }

  void check_checkpoints(bool done) const {
    const fs::path checkpoints = path() + "/checkpoints";
    if (!fs::exists(checkpoints)) {
      CHECK_FALSE(done);
      CHECK(begins_ != Begins::resuming);
      return;
    }
    for (const auto& entry : fs::directory_iterator(checkpoints)) {
      const std::string name = entry.path().filename().string();
      INFO(entry.path());
      if (name.starts_with(".")) continue;
      const bool old = begins_ == Begins::resuming && name == run::checkpoint_name(stopped_at);
      CHECK((entry.is_symlink() || run::checkpoint_step(name) == steps || run::checkpoint_step(name) == 4 || old));
      if (entry.is_symlink()) {
        CHECK(fs::exists(entry.path()));
      } else {
        CHECK_NOTHROW(run::load_checkpoint(entry.path()));
      }
    }
    if (done) CHECK(fs::read_symlink(checkpoints / "last") == run::checkpoint_name(steps));
  }

  // What a whole run leaves, without times: its parameters, its lines and its config.
  std::string kept_of(const std::string& name) const {
    const std::string run = folder_ / name;
    const std::string kept = read_text(run + "/checkpoints/last/params.safetensors") +
                             read_text(run + "/checkpoints/last/optimizer.safetensors") +
                             read_text(run + "/config.yaml");
    return kept + with_zeros(read_text(run + "/metrics.jsonl"), {"seconds", "examples_per_second"});
  }

  const Begins begins_;
  TemporaryFolder folder_;
  std::string config_, neighbour_, old_, whole_;
};

}  // namespace

namespace {

void check_every_fault(Begins begins) {
  RepeatedRun run(begins);
  FailingFileSystem sound;
  run.check_whole(run.run_on(sound));
  test::Slice slice(3 * test::slices_with_sanitizer(4));
  for (const Failure& failure : failures) {
    INFO(to_string(failure.call));
    const bool is_called = failure.call != Call::truncate || begins == Begins::resuming;
    CHECK((sound.count(failure.call) > 0) == is_called);
    for (int call = 1; call <= sound.count(failure.call); ++call) {
      for (const bool ever_after : {false, true}) {
        if (!slice.takes(call == 1)) continue;
        Fault fault{failure.call, call, failure.error, ever_after};
        fault.torn = failure.call == Call::write && (call % 2 == 0) != ever_after;
        FailingFileSystem failing(fault);
        const Finished result = run.run_on(failing);
        run.check(result, failure, fault);
      }
    }
  }
}

}  // namespace

TEST_CASE("whichever call fails as a run begins, it ends as it says and loses nothing that was there", "[run]") {
  check_every_fault(Begins::anew);
}

TEST_CASE("whichever call fails as a run takes the place of an old one, that is as it was or replaced", "[run]") {
  check_every_fault(Begins::overwriting);
}

TEST_CASE("whichever call fails as a run is resumed, it goes on to the same end", "[run]") {
  check_every_fault(Begins::resuming);
}

TEST_CASE("a run does without locks, and without flushing where a file system cannot", "[run]") {
  const Begins begins = GENERATE(Begins::anew, Begins::overwriting, Begins::resuming);
  RepeatedRun run(begins);
  for (const Fault& fault : {Fault{Call::lock, 1, ENOLCK, true}, Fault{Call::flush, 1, EINVAL, true}}) {
    INFO(to_string(fault.call));
    FailingFileSystem lacking(fault);
    const Finished result = run.run_on(lacking);
    run.check_whole(result);
    CHECK(lacking.count(fault.call) > 0);
    CHECK(contains(result.err, "has no locks: nothing keeps a second pmaptrain from writing there") ==
          (fault.call == Call::lock));
  }
}
