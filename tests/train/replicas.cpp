// Copies that must be the same: damage to one is found, and said where.
#include "core/train/replicas.h"

#include <cstring>

#include "tests/catch.h"
#include "tests/train/session_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// Flips the lowest bit of one byte of an input's copy on one device.
void flip(CpuExecutor& executor, const std::string& input, std::int64_t device, std::size_t at) {
  const std::span<const std::byte> bytes = executor.input(input, device);
  std::vector<std::byte> damaged(bytes.begin(), bytes.end());
  damaged[at] ^= std::byte{1};
  executor.set(input, device, damaged);
}

train::SessionOptions damaging(const std::string& input, std::int64_t device, std::int64_t at_step) {
  train::SessionOptions options;
  options.verify_replicas = true;
  options.between_steps = [=](CpuExecutor& executor, std::int64_t step) {
    if (step == at_step) flip(executor, input, device, 2);
  };
  return options;
}

std::string last_warning(const Trained& trained) { return trained.of<train::Warned>().back().text; }

}  // namespace

TEST_CASE("a flipped bit in one private copy is reported by parameter and device", "[train]") {
  const train::Setup setup = setup_of_text(small_images, {"mesh.axes=[{a: 2}, {b: 3}]", "data.batch_size=12"});
  const Trained trained = train_setup(setup, damaging("dense_0.kernel", 4, 2));
  CHECK(trained.ended.status == "stopped");
  CHECK(trained.ended.reason == "guard");
  CHECK(trained.ended.exit_status == 5);
  CHECK(trained.ended.steps == 2);
  CHECK(last_warning(trained) ==
        "step 2: parameter 'dense_0.kernel' differs on device 4; the checkpoint holds what device 0 has, which may be "
        "damaged too");
  CHECK(trained.of<train::Evaluated>().empty());
}

TEST_CASE("damage to the optimizer's state and to the first device is told from the others'", "[train]") {
  const train::Setup setup = setup_of_text(small_images);
  const Trained state = train_setup(setup, damaging("adam.nu/conv_0.kernel", 3, 1));
  CHECK(last_warning(state).starts_with("step 1: state 'adam.nu/conv_0.kernel' differs on device 3;"));
  const Trained first = train_setup(setup, damaging("conv_0.bias", 0, 1));
  CHECK(last_warning(first).starts_with("step 1: parameter 'conv_0.bias' differs on device 0;"));
}

TEST_CASE("damage between two comparisons is found at the next, which is logged", "[train]") {
  const train::Setup setup =
      setup_of_text(small_images, {"train.verify_replicas=3 steps", "train.log_every=never", "train.duration=5 steps"});
  const Trained trained = train_setup(setup, damaging("conv_0.kernel", 2, 1));
  CHECK(trained.ended.exit_status == 5);
  CHECK(trained.ended.steps == 3);
  CHECK(trained.of<train::Logged>().back().step == 3);
  bool found = false;
  for (const train::Warned& warned : trained.of<train::Warned>()) {
    found = found || warned.text.find("parameter 'conv_0.kernel' differs on device 2") != std::string::npos;
  }
  CHECK(found);
}

TEST_CASE("damage after the last comparison of an interval is found at the end of the run", "[train]") {
  const train::Setup setup = setup_of_text(small_images, {"train.log_every=never", "train.duration=2 steps"});
  const Trained trained = train_setup(setup, damaging("conv_0.kernel", 1, 2));
  CHECK(trained.ended.reason == "guard");
  CHECK(last_warning(trained).starts_with("step 2: parameter 'conv_0.kernel' differs on device 1;"));
}

TEST_CASE("copies without damage pass, and do not change the run", "[train]") {
  const train::Setup setup = setup_of_text(small_images);
  train::SessionOptions options;
  options.verify_replicas = true;
  const Trained trained = train_setup(setup, options);
  CHECK(trained.ended.reason == "duration");
  CHECK(trained.ended.exit_status == 0);
  CHECK(trained.same_bits(train_setup(setup)));
}

TEST_CASE("several devices that differ are all named, in order", "[train]") {
  const train::Setup setup = setup_of_text(small_images, {"mesh.axes={a: 5}", "data.remainder=mask"});
  const Plan plan = make_plan(setup.training, {true});
  CpuExecutor executor(plan, {});
  CHECK_FALSE(train::find_divergence(executor));
  flip(executor, "dense_0.bias", 4, 0);
  flip(executor, "dense_0.bias", 1, 1);
  const auto divergence = train::find_divergence(executor);
  REQUIRE(divergence);
  CHECK(divergence->devices == std::vector<std::int64_t>{1, 4});
  CHECK(train::describe(*divergence, *setup.training) == "parameter 'dense_0.bias' differs on devices 1, 4");
}
