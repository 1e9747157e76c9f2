// Training on GPUs beside training on the CPU.
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/evaluate/evaluator.h"
#include "core/runtime/gpu/division.h"
#include "core/setup/plan.h"
#include "core/train/resume.h"
#include "tests/catch.h"
#include "tests/emulated_gpu/platform.h"
#include "tests/gpu/gpus.h"
#include "tests/gpu/networks.h"
#include "tests/session_run.h"
#include "tests/words.h"

namespace pmaptrain::testing {
namespace {

using test::tests_use_cuda, test::WithGpus;

// CUDA's sums have another order, whose last bits Adam makes those of an update where a gradient is nearly zero: at
// most a step of the learning rate for each update. Losses hardly change by that.
Tolerance tolerance() { return tests_use_cuda() ? Tolerance{1e-4, 1e-2} : Tolerance{}; }

using Check = void(const Trained& found, const Trained& expected);

void check_parameters_too(const Trained& found, const Trained& expected) {
  check_same_training(found, expected, tolerance());
}

// Where sums differ in their last bits, some are rounded to another number of bf16, which is as near. So the sign of
// what goes into a relu changes here and there, and a gradient whose terms nearly cancel may become any other. The
// CPU's own gradients change by parts of a hundred with its vector instructions; the losses do not by a tenth of that.
void check_losses(const Trained& found, const Trained& expected) {
  const auto ours = found.of<run::Logged>(), others = expected.of<run::Logged>();
  REQUIRE(ours.size() == others.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    CHECK(ours[i].measures.front().second == Approx(others[i].measures.front().second).epsilon(1e-2));
  }
}

void check_on_gpus(setup::Setup setup, std::vector<int> counts, Check& check = check_parameters_too) {
  if (counts.empty()) return;
  if (counts.front() != 1) counts.insert(counts.begin(), 1);  // whose bits those of several are compared with
  const TemporaryFolder root;
  const Trained expected = train_setup_in(root / "cpu", setup);
  setup.loaded.spec.mesh.backend = spec::Backend::cuda;
  for (const bool deterministic : {true, false}) {
    setup.loaded.spec.mesh.deterministic = deterministic;
    setup.loaded.spec.mesh.blocks.reset();  // that of the CPU
    std::optional<run::Tensors> one;
    for (const int count : counts) {
      const std::vector<int> possible = gpu::possible_gpu_counts(
          setup.spec().mesh.mesh, count, deterministic ? gpu::Parts::whole_blocks : gpu::Parts::any);
      if (possible.back() != count) continue;
      INFO("GPUs " << count << ", deterministic " << deterministic);
      const WithGpus gpus(count);
      setup.loaded.spec.mesh.workers = count;
      const Trained found = train_setup_in(root / ("gpus" + std::to_string(count) + (deterministic ? "d" : "")), setup);
      check(found, expected);
      if (!one) one = found.parameters;
      if (!deterministic) continue;
      for (const auto& [name, tensor] : *one) {
        INFO(name);
        CHECK((found.parameters.at(name) == tensor));
      }
    }
  }
}

}  // namespace

DEVICE_TEST_CASE("every shipped config trains on 1, 2, 4 and 8 GPUs as on the CPU", "[gpu][one][several]") {
  const std::vector<int> counts = test::gpu_counts({1, 2, 4, 8});
  for (const std::string& config : shipped_configs()) {
    test::run_apart(config, [&] { check_on_gpus(shortened(config, KernelChoice::reference), counts); });
  }
}

DEVICE_TEST_CASE("ResNet-18, GPT and ViT train on GPUs as on the CPU, in both precisions", "[gpu][one][several]") {
  // On emulated GPUs each in one of the precisions, and on one GPU or also on 2 or 4, in turn.
  test::Turns precisions(test::gpu_slices()), numbers(test::gpu_slices());
  for (const test::Network& network : test::small_networks()) {
    std::set<int> wanted{1};
    for (const std::size_t doubled : numbers.next(3)) wanted.insert(1 << doubled);
    for (const std::size_t mixed : precisions.next(2)) {
      const std::string precision = mixed == 1 ? "mixed_bfloat16" : "float32";
      test::run_apart(network.name + ", " + precision, [&] {
        check_on_gpus(test::setup_of(network, precision), test::gpu_counts({wanted.begin(), wanted.end()}),
                      mixed == 1 ? check_losses : check_parameters_too);
      });
    }
  }
}

DEVICE_TEST_CASE("the members of an ensemble are evaluated together on GPUs as on the CPU", "[gpu][one][several]") {
  const TemporaryFolder root;
  setup::Setup setup = setup_of_text(
      small_images, {"mesh.axes=[{models: 2}, {devices: 4}]", "ensemble={axis: models, vary: {seed: [0, 5]}}"});
  train_setup_in(root / "run", setup);
  const auto average = [&] {
    return evaluate::CheckpointEvaluation(setup.loaded, root / "run", "last", std::nullopt, spec::Weights::ema, {})
        .evaluate_average();
  };
  const evaluate::Evaluation expected = average();
  setup.loaded.spec.mesh.backend = spec::Backend::cuda;
  for (const int count : test::gpu_counts({1, 2})) {
    INFO("GPUs " << count);
    // One module computes the members' outputs, and another one, beside it, the measures of their means.
    const WithGpus gpus(count);
    setup.loaded.spec.mesh.workers = count;
    const evaluate::Evaluation found = average();
    REQUIRE(found.measures.size() == expected.measures.size());
    CHECK(found.examples == expected.examples);
    for (std::size_t i = 0; i < expected.measures.size(); ++i) {
      CHECK(found.measures[i].second == Approx(expected.measures[i].second).epsilon(1e-4));
    }
  }
}

DEVICE_TEST_CASE("masks, microbatches and dropout train on GPUs as on the CPU", "[gpu][one][several]") {
  const std::vector<int> counts = test::gpu_counts({1, 2});
  const std::string mlp = "model.layers=[flatten, {dense: 8}, {dropout: 0.4}, gelu, {dense: 3}]";
  const std::vector<std::vector<std::string>> variations = {
      {"data.batch_size=10", "data.remainder=mask", "data.microbatches=3"},
      {"loss={softmax_cross_entropy: {ignore_label: 1}}", "data.batch_size=10", "data.remainder=mask",
       "data.microbatches=3"},
      {mlp, "data.microbatches=2", "optimizer.adamw={}", "train.eval_every=1 step"},
      {"mesh.axes=[{a: 2}, {b: 3}]", "data.batch_size=12", "train.verify_replicas=1 step"},
      {"optimizer.learning_rate=1.0e+38", "train.duration=9 steps", "train.on_nonfinite=skip"},
      {mlp, "optimizer.sgd={momentum: 0.9, weight_decay: 0.01}", "optimizer.weight_decay_exclude='*.bias'"},
      {mlp, "optimizer.adagrad={}", "optimizer.clip=0.01", "optimizer.clip_by_global_norm=0.1"},
      {mlp, "optimizer.sgd={momentum: 0.9}", "optimizer.learning_rate=1.0e+38", "train.on_nonfinite=skip"},
      // Gradients that are large enough for GPUs to exchange parts of them. Adam would divide each by its size, and so
      // magnify the rounding of small ones.
      {"train.duration=3 steps", "model.layers=[flatten, {dense: 900}, relu, {dense: 3}]",
       "optimizer.sgd={momentum: 0.9}"},
  };
  for (const std::vector<std::string>& set : variations) {
    test::run_apart(fmt::format("{}", fmt::join(set, " ")),
                    [&] { check_on_gpus(setup_of_text(small_images, set), counts); });
  }
}

DEVICE_TEST_CASE("shards of parameters and state train on GPUs as on the CPU", "[gpu][one][several]") {
  // On emulated GPUs one of the two models of three large layers, and on 2 or on 4.
  test::Slice large(2, test::gpu_slices());
  test::Turns numbers(test::gpu_slices());
  const std::vector<std::string> two_axes{"mesh.axes=[{a: 2}, {b: 2}]", "parallelism.fsdp={axis: b, stage: 3}"};
  for (std::vector<std::string> set :
       {std::vector<std::string>{"parallelism.fsdp={axis: devices, stage: 1}"},
        {"parallelism.fsdp={axis: devices, stage: 2}", "data.microbatches=2"},
        {"parallelism.fsdp={axis: devices, stage: 3}", "optimizer.clip_by_global_norm=0.1"},
        {"parallelism.fsdp={axis: devices, stage: 3}", "model.layers=[flatten, {dense: 900}, relu, {dense: 3}]",
         "optimizer.sgd={momentum: 0.9}"},
        {"parallelism.fsdp={axis: devices, stage: 3}",
         "model.layers=[flatten, {dense: 512}, relu, {dense: 512}, relu, {dense: 520}, {dense: 3}]",
         "optimizer.sgd={momentum: 0.9}"},
        two_axes,
        {two_axes[0], two_axes[1], "model.layers=[flatten, {dense: 900}, relu, {dense: 3}]",
         "optimizer.sgd={momentum: 0.9}"},
        {two_axes[0], two_axes[1],
         "model.layers=[flatten, {dense: 512}, relu, {dense: 512}, relu, {dense: 520}, {dense: 3}]",
         "optimizer.sgd={momentum: 0.9}"}}) {
    const bool is_large =
        std::any_of(set.begin(), set.end(), [](const std::string& key) { return key.find("520") != key.npos; });
    if (is_large && !large.takes()) continue;
    std::set<int> wanted{1, 2, 4};
    if (is_large) {
      wanted = {1};
      for (const std::size_t four : numbers.next(2)) wanted.insert(four == 1 ? 4 : 2);
    }
    const std::vector<int> counts = test::gpu_counts({wanted.begin(), wanted.end()});
    test::run_apart(fmt::format("{}", fmt::join(set, " ")), [&] {
      set.insert(set.end(), {"train.ema={decay: 0.9}", is_large ? "train.duration=2 steps" : "train.duration=4 steps"});
      check_on_gpus(setup_of_text(small_images, set), counts);
    });
  }
}

TEST_CASE("after its first steps a run on GPUs allocates, compiles and records nothing more", "[gpu]") {
  // An epoch has three steps, and each ends with an evaluation: after ten epochs that entry has had all of its slots.
  const auto calls_in = [](int steps, int gpus) {
    const WithGpus with(test::make_emulated({.devices = gpus}));
    train_setup(
        setup_of_text(small_images, {"mesh.backend=cuda", "mesh.workers=" + std::to_string(gpus),
                                     "train.log_every=7 steps", "train.duration=" + std::to_string(steps) + " steps"}));
    const test::DeviceCalls& counts = test::calls_of(with.platform());
    return std::vector<int>{counts.memory, counts.kernels, counts.graphs, counts.communicators};
  };
  for (const int gpus : {1, 2}) {
    INFO("GPUs " << gpus);
    const std::vector<int> calls = calls_in(30, gpus);
    for (std::size_t i = 0; i < 3; ++i) CHECK(calls[i] > 0);
    CHECK((calls[3] > 0) == (gpus > 1));
    CHECK(calls_in(170, gpus) == calls);
  }
}

TEST_CASE("profilers see what a step calls by the names of layers", "[gpu]") {
  const WithGpus with(test::make_emulated({}));
  train_setup(setup_of_text(small_images,
                            {"model.layers=[flatten, {dense: 3}]", "mesh.backend=cuda", "train.duration=1 step"}));
  test::DeviceCalls& calls = test::calls_of(with.platform());
  CHECK(calls.open_ranges == 0);
  const std::vector<std::string> ranges = calls.ranges.take();
  for (const std::string name :
       {"dense_0: matmul", "dense_0.grad: matmul_kernel_grad", "adam: fused", "grad_norm: norms"}) {
    INFO(name);
    CHECK(std::find(ranges.begin(), ranges.end(), name) != ranges.end());
  }
}

TEST_CASE("mesh.tf32 reaches every kernel of a run", "[gpu]") {
  for (const std::string tf32 : {"false", "true"}) {
    const WithGpus with(test::make_emulated({}));
    train_setup(setup_of_text(small_images, {"mesh.backend=cuda", "mesh.tf32=" + tf32, "train.duration=1 step"}));
    const test::DeviceCalls& counts = test::calls_of(with.platform());
    CHECK(counts.kernels > 0);
    CHECK(counts.tf32 == (tf32 == "true" ? counts.kernels.load() : 0));
  }
}

TEST_CASE("a GPU that is lost in a run ends it, and the last checkpoint is whole", "[gpu]") {
  const std::vector<std::string> set = {"mesh.backend=cuda", "train.duration=9 steps", "train.checkpoint.every=1 step"};
  const TemporaryFolder root;
  {
    const WithGpus gpus(test::make_emulated(
        {.devices = 2, .patience = std::chrono::milliseconds(500), .lost_rank = 1, .lost_from = 6}));
    const std::string said =
        test::refusal([&] { train_setup_in(root / "run", setup_of_text(small_images, set)); }, ExitStatus::failed);
    INFO(said);
    CHECK(said.find("rank 1") != std::string::npos);
  }
  const std::string summary = read_text(root / "run/summary.json");
  INFO(summary);
  CHECK(summary.find("\"failed\"") != std::string::npos);
  CHECK(nlohmann::json::parse(summary).at("steps").get<int>() <= 6);  // each has a collective, and six were whole
  const WithGpus gpus(2);
  const setup::Setup setup = setup_of_text(small_images, set);
  std::optional<train::ResumePoint> point = train::find_resume_point(root / "run");
  REQUIRE(point);
  CHECK(point->checkpoint.state.step > 0);
  CHECK(point->checkpoint.state.step < 9);
  const Trained resumed = train_setup_in(root / "run", setup, going_on_from(*point)), whole = train_setup(setup);
  CHECK((resumed.parameters == whole.parameters));
  CHECK((resumed.state == whole.state));
}

}  // namespace pmaptrain::testing
