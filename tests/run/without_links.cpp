// File systems without symbolic links: small files take the place of the links.
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/run/find_checkpoint.h"
#include "tests/app/call.h"
#include "tests/catch.h"
#include "tests/run/test_file_systems.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using tests::call;
using tests::contains;
using tests::Finished;
using tests::TemporaryFolder;
namespace fs = std::filesystem;

TEST_CASE("without symbolic links checkpoints/last and best are files with the folder's name, and all else is as ever",
          "[run]") {
  for (const int error : {EPERM, EOPNOTSUPP}) {
    FailingFileSystem no_links({Call::link, 1, error, true});
    const run::InstalledFileSystem installed(no_links);
    const TemporaryFolder folder;
    const std::string run = folder / "run";
    const std::string config = folder.write(
        "c.yaml",
        "data: {source: {values: {inputs: [[0.0], [1.0], [2.0], [3.0]], targets: [[1.0], [3.0], [5.0], [7.0]]}}, "
        "batch_size: 2, validation: 1.0e-9}\nmodel: {layers: [dense: 1]}\nloss: mean_squared_error\n"
        "optimizer: {sgd: {}, learning_rate: 0.05}\ntrain: {duration: 12 steps, eval_every: 1 step, "
        "checkpoint: {every: 1 step, keep: 2, best: {metric: loss}}}\n");
    const auto trained = [&](std::vector<std::string> more) {
      more.insert(more.begin(), {"run", config, "--run-dir", run, "--progress", "none"});
      const Finished done = call(more);
      INFO(done.err);
      CHECK(done.status == 0);
      CHECK_FALSE(contains(done.err, "could not be written"));
    };
    trained({"--max-steps", "8"});
    const fs::path checkpoints = fs::path(run) / "checkpoints";
    CHECK(fs::is_regular_file(fs::symlink_status(checkpoints / "last")));
    CHECK(tests::read_text(checkpoints / "last") == "step-00000008\n");
    CHECK(run::checkpoint_steps(run).size() <= 3);  // two, and the best
    CHECK(run::find_checkpoint(run, "last") == checkpoints / "step-00000008");
    const std::string best = run::find_checkpoint(run, "best").filename().string();
    CHECK(tests::read_text(checkpoints / "best") == best + "\n");
    CHECK(fs::is_directory(checkpoints / best));
    trained({"--resume"});
    CHECK(run::find_checkpoint(run, "last") == checkpoints / "step-00000012");
    CHECK(run::checkpoint_steps(run).size() <= 3);
    for (const char* const which : {"best", "last"}) {
      CHECK(call({"eval", run, "--checkpoint", which, "--json"}).status == 0);
    }
    CHECK(contains(call({"eval", run}).out, "best checkpoint "));
    CHECK(call({"export", run, "--output", folder / "m.onnx"}).status == 0);
    CHECK(call({"runs", folder.path().string()}).status == 0);
    CHECK(call({"report", run, "--output", folder / "r.html"}).status == 0);
    CHECK(call({"validate", config, "--set", "model.init.from.path=" + run, "--set", "model.init.from.checkpoint=best"})
              .status == 0);
    trained({"--overwrite", "--max-steps", "3"});
    CHECK(run::find_checkpoint(run, "last") == checkpoints / "step-00000003");
    CHECK(run::checkpoint_steps(run).back() == 3);
  }
}

TEST_CASE("a small file that names no entry beside it leads nowhere", "[run]") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  fs::create_directories(run / "checkpoints/step-00000001");
  for (const char* const text : {"", "step-00000001", "../step-00000001\n", "step-00000009\n"}) {
    folder.write("run/checkpoints/best", text);
    CHECK_FALSE(run::checkpoint_folder(run, "best"));
  }
  folder.write("run/checkpoints/best", "step-00000001\n");
  CHECK(run::checkpoint_folder(run, "best") == run / "checkpoints/step-00000001");
}
