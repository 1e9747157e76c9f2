// Checkpoints that are written while training goes on.
#include "core/train/checkpoint_writer.h"

#include <filesystem>

#include "tests/catch.h"
#include "tests/run/file_size_limit.h"
#include "tests/session_run.h"
#include "tests/train/steps.h"

namespace pmaptrain::testing {
namespace {

namespace fs = std::filesystem;

const std::string every_step = "train.checkpoint={every: 1 step, keep: 2}";

std::vector<std::string> checkpoints_of(const fs::path& run) {
  std::vector<std::string> names;
  for (const std::int64_t step : run::checkpoint_steps(run)) names.push_back(run::checkpoint_name(step));
  return names;
}

// Every checkpoint beside the run's parameters at its step, read between the steps.
TEST_CASE("a checkpoint has what the step left at which it was taken, though training goes on meanwhile", "[train]") {
  const TemporaryFolder root;
  std::map<std::int64_t, std::vector<std::byte>> kernels;
  train::SessionOptions options;
  options.between_steps = [&](Module& module, std::int64_t step) {
    kernels[step] = setup::bytes_of(module, module.input("dense_0.kernel"));
  };
  const setup::Setup setup =
      setup_of_text(small_images, {"train.checkpoint={every: 1 step, keep: 20}", "train.duration=12 steps"});
  train_setup_in(root / "run", setup, options);
  CHECK(checkpoints_of(root / "run").size() == 12);
  for (const auto& [step, kernel] : kernels) {
    const run::Checkpoint found = run::load_checkpoint(root / "run/checkpoints" / fs::path(run::checkpoint_name(step)));
    CHECK(found.state.step == step);
    CHECK(found.state.members.front().updates == step);
    CHECK(run::read_safetensors(found.parameters.path).at("dense_0.kernel").bytes == kernel);
  }
}

TEST_CASE("only so many of the newest checkpoints are kept, and the best one", "[train]") {
  const TemporaryFolder root;
  train_setup_in(root / "few", setup_of_text(small_images, {every_step, "train.duration=9 steps"}));
  CHECK(checkpoints_of(root / "few") == std::vector<std::string>{"step-00000008", "step-00000009"});
  CHECK(fs::read_symlink(root / "few/checkpoints/last") == "step-00000009");
  CHECK_FALSE(fs::exists(root / "few/checkpoints/best"));

  // With a rate that makes it worse, the first evaluation stays the best one.
  const Trained trained = train_setup_in(
      root / "best", setup_of_text(small_images, {"train.checkpoint={every: 1 step, keep: 2, best: {metric: loss}}",
                                                  "train.duration=9 steps", "optimizer.learning_rate=3.0"}));
  REQUIRE(trained.result().best);
  CHECK(trained.result().best->metric == "loss");
  const std::string best = run::checkpoint_name(trained.result().best->step);
  CHECK(fs::read_symlink(root / "best/checkpoints/best") == best);
  CHECK(fs::exists(root / "best/checkpoints" / fs::path(best) / "params.safetensors"));
  CHECK(checkpoints_of(root / "best").size() <= 3);
  double least = std::numeric_limits<double>::infinity();
  for (const run::Evaluated& evaluated : trained.of<run::Evaluated>()) {
    least = std::min(least, evaluated.measures.front().second);
  }
  CHECK(trained.result().best->value == least);
}

TEST_CASE("a checkpoint that cannot be written during the run is said, and training goes on", "[train]") {
  const TemporaryFolder root;
  train::SessionOptions options;
  std::optional<FileSizeLimit> limit;
  options.between_steps = [&](Module&, std::int64_t step) {
    if (step == 3) limit.emplace(300);
    if (step == 6) limit.reset();
  };
  const Trained trained =
      train_setup_in(root / "run", setup_of_text(small_images, {every_step, "train.duration=9 steps"}), options);
  CHECK(trained.ended.status == "done");
  std::size_t said = 0;
  for (const run::Warned& warned : trained.of<run::Warned>()) {
    if (warned.text.starts_with("a checkpoint could not be written: '") &&
        warned.text.ends_with("File too large; training goes on")) {
      ++said;
    }
  }
  CHECK(said >= 1);
  CHECK(checkpoints_of(root / "run") == std::vector<std::string>{"step-00000008", "step-00000009"});
  CHECK(train_setup(setup_of_text(small_images, {"train.duration=9 steps"})).parameters == trained.parameters);
}

TEST_CASE("a run that writes no checkpoint before its end has no snapshot and no thread for it", "[train]") {
  const setup::Setup without = setup_of_text(small_images, {"train.checkpoint.every=never"});
  CHECK(train::snapshot_bytes(without) == 0);
  const setup::Setup with = setup_of_text(small_images, {every_step});
  std::size_t expected = 0;
  for (const Variable& variable : variables_of(*with.training)) {
    if (variable.group == Group::params || variable.group == Group::state) expected += bytes(variable.type);
  }
  CHECK(train::snapshot_bytes(with) == expected - 1);  // the guard's flag says nothing of a run that goes on
  CHECK(train_setup(without).same_bits(train_setup(with)));
}

}  // namespace
}  // namespace pmaptrain::testing
