// Training on the GPUs of several processes leaves what one process with as many GPUs leaves.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/evaluate/evaluator.h"
#include "core/run/first_process.h"
#include "core/runtime/backends.h"
#include "core/runtime/gpu/division.h"
#include "core/setup/plan.h"
#include "core/train/resume.h"
#include "tests/catch.h"
#include "tests/emulated_gpu/platform.h"
#include "tests/gpu/gpus.h"
#include "tests/session_run.h"
#include "tests/slice.h"
#include "tests/train/in_processes.h"

namespace pmaptrain::testing {
namespace {

using GpuPlatforms = std::vector<std::unique_ptr<gpu::Platform>>;
// Makes the setup of a run, where its GPUs are found.
using MakeSetup = std::function<setup::Setup()>;

setup::Setup for_gpus(setup::Setup setup, bool deterministic, int gpus, int blocks) {
  spec::MeshSpec& mesh = setup.loaded.spec.mesh;
  mesh.backend = spec::Backend::cuda;
  mesh.deterministic = deterministic;
  mesh.workers = gpus;
  mesh.blocks = blocks;
  return setup;
}

// The blocks of GPUs, and of processes.
int blocks_for(const setup::Setup& setup, bool deterministic, int processes) {
  const Mesh mesh = spec::member_mesh(setup.spec());
  return deterministic ? gpu::blocks_of(mesh).gpus() : processes;
}

void check_processes(const MakeSetup& make, bool deterministic, int processes, int each) {
  const test::Emulation emulation{.devices = each, .seed = 3};
  Trained expected;
  {
    const test::WithGpus gpus(test::make_emulated({.devices = processes * each, .seed = 3}));
    const setup::Setup setup = make();
    const int blocks = blocks_for(setup, deterministic, processes);
    const auto parts = deterministic ? gpu::Parts::whole_blocks : gpu::Parts::any;
    const std::vector<int> possible = gpu::possible_gpu_counts(spec::member_mesh(setup.spec()), processes * each,
                                                               {parts, deterministic ? blocks : 0, processes});
    if (blocks % processes != 0 || possible.empty() || possible.back() != processes * each) return;
    expected = train_setup(for_gpus(setup, deterministic, processes * each, blocks));
    REQUIRE_FALSE(expected.metrics.empty());
  }
  const GpuPlatforms platforms = test::make_emulated(processes, emulation);
  const TemporaryFolder root;
  const Ends ends = train_in_processes(processes, root / "run", [&](int process, Agreement&, train::SessionOptions&) {
    set_gpu_platform_of_thread(platforms[static_cast<std::size_t>(process)].get());
    const setup::Setup setup = make();
    return for_gpus(setup, deterministic, each, blocks_for(setup, deterministic, processes));
  });
  for (const std::string& failure : ends.failures) CHECK(failure.empty());
  CHECK(ends.trained.same_bits(expected));
  for (const run::Ended& ended : ends.ended) CHECK(ended.exit_status == expected.ended.exit_status);
}

void check_processes(const MakeSetup& make, const std::string& name, test::Turns& turns) {
  for (const auto& [processes, each] : {std::pair(2, 1), {2, 2}, {4, 1}, {4, 2}}) {
    for (const std::size_t deterministic : turns.next(2)) {
      INFO(name << ", " << processes << " processes with " << each << " GPUs, deterministic " << deterministic);
      check_processes(make, deterministic == 1, processes, each);
    }
  }
}

}  // namespace

TEST_CASE("every shipped config trains on the GPUs of several processes as on those of one", "[gpu][placements]") {
  test::Slice slice(4);
  test::Turns turns;
  for (const std::string& config : shipped_configs()) {
    if (!slice.takes()) continue;
    check_processes([&] { return shortened(config, KernelChoice::reference); }, config, turns);
  }
}

TEST_CASE("masks, microbatches, norms, shards, metrics and ensembles train on the GPUs of several processes",
          "[gpu][placements]") {
  const std::string mlp = "model.layers=[flatten, {dense: 8}, {dropout: 0.4}, gelu, {dense: 3}]";
  const std::vector<std::vector<std::string>> variations = {
      {mlp, "data.batch_size=10", "data.remainder=mask", "data.microbatches=3"},
      {mlp, "optimizer.clip_by_global_norm=0.1", "train.ema={decay: 0.9}"},
      {mlp, "parallelism.fsdp={axis: devices, stage: 1}"},
      {mlp, "parallelism.fsdp={axis: devices, stage: 3}", "optimizer.clip_by_global_norm=0.1"},
      {mlp, "mesh.axes=[{a: 2}, {b: 2}]", "parallelism.fsdp={axis: b, stage: 3}"},
      {mlp, "mesh.axes=[{a: 2}, {b: 2}]", "precision=mixed_bfloat16", "train.verify_replicas=1 step"},
      {mlp, "mesh.axes=[{a: 2}, {b: 4}]", "ensemble={axis: a, vary: {seed: [0, 1]}}"},
      {mlp, "metrics=[accuracy, confusion_matrix]", "train.eval_every=2 steps", "data.validation=0.25",
       "train.checkpoint={every: 1 step, best: {metric: loss}}"},
      {mlp, "optimizer.learning_rate=1.0e+38", "train.on_nonfinite=skip"},
      {"train.duration=2 steps", "model.layers=[flatten, {dense: 900}, relu, {dense: 3}]"},
      // Each GPU gets its part of a sum along both axes. NCCL adds along both at once, or along one and then the other.
      {"train.duration=2 steps", "model.layers=[flatten, {dense: 900}, relu, {dense: 3}]", "mesh.axes=[{a: 2}, {b: 2}]",
       "parallelism.fsdp={axis: [a, b], stage: 2}"},
      {"train.duration=2 steps", "model.layers=[flatten, {dense: 900}, relu, {dense: 3}]", "mesh.axes=[{a: 2}, {b: 2}]",
       "parallelism.fsdp={axis: b, stage: 3}"},
  };
  test::Slice slice(4);
  test::Turns turns, copies;
  for (const std::vector<std::string>& set : variations) {
    if (!slice.takes()) continue;
    for (const std::size_t copied : copies.next(2)) {
      std::vector<std::string> all = set;
      all.emplace_back(copied == 1 ? "mesh.backend=cpu" : "mesh.backend=cuda");  // where the data is
      check_processes([&] { return setup_of_text(small_images, all); }, set[1 % set.size()], turns);
    }
  }
}

TEST_CASE("a run is resumed and evaluated on the GPUs of several processes with the bits of one", "[gpu][placements]") {
  const TemporaryFolder root;
  const auto setup_here = [](const std::string& workers = "1") {
    return setup_of_text(small_images, {"mesh.backend=cuda", "mesh.deterministic=true", "mesh.workers=" + workers,
                                        "model.layers=[flatten, {dense: 8}, {dropout: 0.4}, {dense: 3}]"});
  };
  const auto evaluate = [&](const setup::Setup& setup, int process, Agreement* agreement) {
    const std::filesystem::path run = root / (process == 0 ? "whole" : "gone");
    return evaluate::CheckpointEvaluation(setup.loaded, run, "last", "test", spec::Weights::ema, std::nullopt, true,
                                          evaluate::SharedBatches(agreement))
        .evaluate_members()
        .front();
  };
  Trained whole;
  evaluate::Evaluation evaluated;
  {
    const test::WithGpus gpus(test::make_emulated({.devices = 2}));
    const setup::Setup setup = setup_here("2");
    whole = train_setup_in(root / "whole", setup);
    evaluated = evaluate(setup, 0, nullptr);
    train_setup_in(root / "run", setup, until(2));
  }
  const GpuPlatforms platforms = test::make_emulated(2, {.devices = 1});
  std::vector<std::optional<train::ResumePoint>> points(2);
  const Ends ends =
      train_in_processes(2, root / "run", [&](int process, Agreement& agreement, train::SessionOptions& options) {
        const auto at = static_cast<std::size_t>(process);
        set_gpu_platform_of_thread(platforms[at].get());
        points[at] = train::find_resume_point(options.run_dir, run::FirstProcess(&agreement));
        if (!points[at]) fail_usage("there is no checkpoint");
        options.resume = &*points[at];
        options.folder.resume = true;
        options.folder.resumed = {points[at]->checkpoint.state.step, "", points[at]->checkpoint.state.metrics_bytes};
        return setup_here();
      });
  for (const std::string& failure : ends.failures) CHECK(failure == "");
  CHECK(ends.trained.same_bits(whole));

  test::MemoryTransport transport(2);
  std::vector<evaluate::Evaluation> found(2);
  test::on_each_process(transport, 2, [&](int process) {
    const auto at = static_cast<std::size_t>(process);
    set_gpu_platform_of_thread(platforms[at].get());
    Agreement agreement({{process, 2}, &transport.end(process)});
    found[at] = evaluate(setup_here(), process, &agreement);
  });
  for (const evaluate::Evaluation& each : found) {
    CHECK(each.measures == evaluated.measures);
    CHECK(each.examples == evaluated.examples);
  }
}

}  // namespace pmaptrain::testing
