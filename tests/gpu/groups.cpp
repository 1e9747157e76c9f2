// Short steps that are submitted together: a run is the same as if each were submitted by itself.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/runtime/gpu/plans.h"
#include "core/setup/plan.h"
#include "core/train/resume.h"
#include "tests/catch.h"
#include "tests/gpu/gpus.h"
#include "tests/gpu/programs.h"
#include "tests/session_run.h"
#include "tests/slice.h"

namespace pmaptrain::testing {
namespace {

using Texts = std::vector<std::string>;

// 50 steps to an epoch.
const std::string short_steps = R"(name: short_steps
mesh: {axes: {devices: 4}}
data:
  source: {synthetic_linear: {features: 3, examples_per_device: 100, noise: 0.1}}
  batch_size: 8
model: {layers: [{dense: 1}]}
loss: mean_squared_error
optimizer: {adam: {}, learning_rate: 0.01}
train: {duration: 120 steps, log_every: 30 steps, eval_every: never}
)";

// Batches that are copied, or numbers of rows of data that stays.
setup::Setup setup_with(Texts set, bool stays) {
  set.emplace_back(stays ? "mesh.backend=cuda" : "mesh.backend=cpu");
  setup::Setup setup = setup_of_text(short_steps, std::move(set));
  setup.loaded.spec.mesh.backend = spec::Backend::cuda;
  setup.loaded.spec.mesh.blocks.reset();  // that of the CPU
  CHECK(setup.resident_splits.empty() == !stays);
  return setup;
}

train::SessionOptions one_by_one() {
  train::SessionOptions options;
  options.between_steps = [](Module&, std::int64_t) {};
  return options;
}

// What a run leaves; the checkpoints' names too.
struct Left {
  Trained trained;
  Texts checkpoints;
};
Left left_by(const setup::Setup& setup, const train::SessionOptions& options) {
  const TemporaryFolder root;
  Left left{train_setup_in(root / "run", setup, options), {}};
  for (const auto& entry : std::filesystem::directory_iterator(root / "run/checkpoints")) {
    left.checkpoints.push_back(entry.path().filename().string());
  }
  std::sort(left.checkpoints.begin(), left.checkpoints.end());
  return left;
}

// Emulated GPUs are slow: the data stays on them or does not in turn, and a run ends in its second epoch.
void check_same(Texts set, const std::vector<int>& counts, train::SessionOptions options = {}) {
  const auto sets_duration = [](const std::string& text) { return text.starts_with("train.duration"); };
  if (std::none_of(set.begin(), set.end(), sets_duration)) set.emplace_back("train.duration=80 steps");
  static test::Turns turns(test::gpu_slices());
  for (const int count : counts) {
    for (const std::size_t stays : turns.next(2)) {
      INFO("GPUs " << count << (stays == 1 ? ", data that stays, " : ", ") << set.front());
      const test::WithGpus gpus(test::open_gpus(count, test::ample_memory));
      const setup::Setup setup = setup_with(set, stays == 1);
      options.between_steps = {};
      const Left found = left_by(setup, options);
      options.between_steps = one_by_one().between_steps;
      const Left expected = left_by(setup, options);
      CHECK(found.trained.same_bits(expected.trained));
      CHECK(found.trained.ended.steps == expected.trained.ended.steps);
      CHECK(found.checkpoints == expected.checkpoints);
    }
  }
}

// How often a run with batches that are copied calls this of its GPU.
std::ptrdiff_t calls_in(Texts set, const train::SessionOptions& options, const std::string& call) {
  const test::WithGpus gpus(test::make_emulated({.memory = test::ample_memory}));
  train_setup(setup_with(std::move(set), false), options);
  const Texts queued = test::calls_of(gpus.platform()).queued.take();
  return std::count(queued.begin(), queued.end(), call);
}

class Stopping : public run::Consumer {
 public:
  explicit Stopping(std::atomic<int>& stop) : stop_(stop) {}
  void on(const run::Event& event) override {
    const auto* const progress = std::get_if<run::Progressed>(&event);
    if (progress != nullptr && progress->step >= 17) stop_ = SIGTERM;
  }

 private:
  std::atomic<int>& stop_;
};

}  // namespace

DEVICE_TEST_CASE("a run whose steps are submitted together is that of single steps", "[gpu]") {
  check_same({}, {1, 2, 4});
  test::Slice slice(test::slices_with_sanitizer(4));
  const auto check = [&](Texts set, const std::vector<int>& counts, const train::SessionOptions& options = {}) {
    if (slice.takes()) check_same(std::move(set), counts, options);
  };
  check({"mesh.deterministic=true", "train.log_every=7 steps"}, {2});
  check({"train.checkpoint.every=7 steps", "train.checkpoint.keep=100"}, {2});
  check({"data.batch_size=24", "data.remainder=mask", "train.duration=40 steps"}, {2});
  check({"model.layers=[{dense: 4}, {dropout: 0.4}, {dense: 1}]"}, {1, 2});
  check({"train.verify_replicas=9 steps", "train.duration=40 steps"}, {2});
  check({"optimizer.learning_rate=1.0e+38"}, {1});
  check({"train.on_nonfinite=skip"}, {2}, until(37));
}

TEST_CASE("epochs of one step are told as those of single steps, however many are submitted together", "[gpu]") {
  const std::string all = "data.batch_size=all", in_order = "data.shuffle=false";
  check_same({all, in_order}, {1, 2, 4});
  test::Slice slice(test::slices_with_sanitizer(3));
  const auto check = [&](Texts set, const std::vector<int>& counts) {
    if (slice.takes()) check_same(std::move(set), counts);
  };
  check({all, in_order, "train.checkpoint.every=7 steps", "train.checkpoint.keep=100"}, {2});
  check({all, in_order, "train.log_every=never"}, {1});
  check({all, in_order, "optimizer.learning_rate=1.0e+38"}, {1});
  check({all, in_order, "optimizer.learning_rate=1.0e+38", "train.on_nonfinite=skip"}, {1});
  check({all, in_order, "train.loss_spike={factor: 3}"}, {1});
  check({all}, {2});  // each epoch in another order, by a loader that prefetches
  check_same({all, in_order}, {2}, until(37));

  CHECK(calls_in({all, in_order}, one_by_one(), "replay") == 120);
  // Steps 1; 2 to 30 as 16, 8, 4 and 1; and three times 30 as 16, 8, 4 and 2.
  CHECK(calls_in({all, in_order}, {}, "replay") == 1 + 4 + 3 * 4);
}

// One order of the examples for all members, an order for each, and a member that stops while the others go on.
DEVICE_TEST_CASE("members of an ensemble take steps together as one by one", "[gpu]") {
  for (const std::string vary :
       {"seed: [1, 2, 3]", "data.seed: [1, 2, 3]", "optimizer.learning_rate: [0.01, 10, 0.02]"}) {
    check_same(
        {"mesh.axes=[{members: 3}, {devices: 2}]", "ensemble={axis: members, vary: {" + vary + "}}",
         "data.source={values: {inputs: [[1], [2], [3], [4], [5], [6]], targets: [[2], [4], [6], [8], [9], [13]]}}",
         "data.batch_size=2", "train.duration=40 steps", "data.validation=0.34", "train.eval_every=5 steps",
         "train.early_stopping={metric: loss, patience: 1}"},
        {1, 2});
  }
}

// How these options end a run after `steps` steps, which is then resumed.
run::Ended check_resumed(const setup::Setup& setup, train::SessionOptions options, std::int64_t steps,
                         std::span<run::Consumer* const> consumers = {}) {
  const Trained whole = train_setup(setup);
  const TemporaryFolder root;
  options.run_dir = root / "run";
  const run::Ended ended = train::train(setup, options, consumers);
  CHECK(ended.steps == steps);
  std::optional<train::ResumePoint> point = train::find_resume_point(root / "run");
  REQUIRE(point);
  CHECK(point->checkpoint.state.step == steps);
  CHECK(train_setup_in(root / "run", setup, going_on_from(*point)).same_bits(whole));
  return ended;
}

TEST_CASE("a run that ends within a group of steps is resumed with the same bits", "[gpu]") {
  for (const bool stays : {false, true}) {
    const test::WithGpus gpus(test::open_gpus(2, test::ample_memory));
    check_resumed(setup_with({}, stays), until(21), 21);
  }
}

TEST_CASE("a signal stops a run after the steps that go together, and it is resumed with the same bits", "[gpu]") {
  const test::WithGpus gpus(test::open_gpus(2, test::ample_memory));
  std::atomic<int> stop = 0;
  train::SessionOptions options;
  options.stop = &stop;
  Stopping stopping(stop);
  run::Consumer* const consumer = &stopping;
  // 16 steps to the end of a group, and 14 to the log line.
  CHECK(check_resumed(setup_with({}, false), options, 30, {&consumer, 1}).reason == "signal");
}

TEST_CASE("steps that go together are few launches, and their batches one copy", "[gpu]") {
  CHECK(calls_in({}, one_by_one(), "replay") == 120);
  CHECK(calls_in({}, one_by_one(), "copy on copy") == 120);
  // Up to multiples of 16, to log lines at 1, 30, 60, 90 and 120, and to the ends of epochs at 50 and 100. Graphs are
  // of 1, 2, 4, 8 and 16 steps.
  CHECK(calls_in({}, {}, "copy on copy") == 14);
  CHECK(calls_in({}, {}, "replay") == 24);
}

TEST_CASE("steps of the shipped configs are short enough on a GPU to go together", "[gpu]") {
  const test::WithGpus with(test::make_emulated({.memory = test::ample_memory}));
  const auto group = [](const std::string& config, Texts set) {
    set.emplace_back("mesh.backend=cuda");
    const Source source = setup::run_source(setup_of_config(config, set));
    return gpu::plan_first_gpu(source, 1, {1, {.deterministic = false}}).sizes.batches.front().group;
  };
  CHECK(group("linear_regression.yaml", {}) == 16);
  CHECK(group("cnn.yaml", {}) == 8);
  CHECK(group("cnn.yaml", {"data.batch_size=4096"}) == 1);  // a step takes milliseconds
  // Each position is two launches, forward and backward.
  const std::string rnn = "model.layers=[{lstm: {features: 8, return: last}}, {dense: 4}]";
  const auto of_positions = [&](const std::string& number) {
    return group("signals.yaml",
                 {rnn, "data.bucket_by_length=null", "data.source.synthetic_signals.positions=" + number});
  };
  CHECK(of_positions("17") > 1);
  CHECK(of_positions("200") == 1);
}

}  // namespace pmaptrain::testing
