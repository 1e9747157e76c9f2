// A checkpoint that a build before buckets wrote: tests/train/before_buckets, by the reference kernels, whose bits do
// not depend on the machine. after_10_steps has what that build had five steps later.
#include <filesystem>
#include <optional>

#include "core/run/files/safetensors.h"
#include "core/setup/make_setup.h"
#include "core/spec/load.h"
#include "core/train/resume.h"
#include "tests/catch.h"
#include "tests/session_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

namespace fs = std::filesystem;

const fs::path before = "tests/train/before_buckets";
const std::string frozen_bias = "dense_0.bias";

}  // namespace

TEST_CASE("a checkpoint of a build without buckets is continued to the same bits", "[train]") {
  const TemporaryFolder folder;
  const fs::path run = folder / "run";
  fs::copy(before, run, fs::copy_options::recursive);
  fs::remove_all(run / "after_10_steps");

  std::optional<train::ResumePoint> point = train::find_resume_point(run);
  REQUIRE(point);
  const run::RunState& state = point->checkpoint.state;
  REQUIRE(state.step == 5);
  const setup::Setup setup = setup::make_setup(spec::load((run / "config.yaml").string(), {}), state.schedule_steps);
  train::check_data_continues(state, setup);
  train::SessionOptions options;
  options.folder.resume = true;
  options.resume = &*point;
  options.folder.resumed = {state.step, run::best_folder(state), state.metrics_bytes};
  const Trained trained = train_setup_in(run, setup, options);

  CHECK(trained.ended.steps == 10);
  const auto tensors_of = [](const fs::path& checkpoint, const char* file) {
    return run::read_safetensors((checkpoint / file).string());
  };
  for (const char* const file : {"params.safetensors", "optimizer.safetensors", "ema.safetensors"}) {
    run::Tensors expected = tensors_of(before / "after_10_steps", file);
    // That build averaged frozen parameters too.
    expected.erase("ema/" + frozen_bias);
    if (expected.contains(frozen_bias))
      expected.at(frozen_bias) = tensors_of(before / "after_10_steps", "params.safetensors").at(frozen_bias);
    const run::Tensors found = tensors_of(run / "checkpoints/step-00000010", file);
    REQUIRE(found.size() == expected.size());
    for (const auto& [name, tensor] : expected) {
      INFO(file << ": " << name);
      REQUIRE(found.contains(name));
      CHECK(found.at(name).shape == tensor.shape);
      CHECK(found.at(name).bytes == tensor.bytes);
    }
  }
}
