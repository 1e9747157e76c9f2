// What a run takes of memory: what validate plans, and nothing that grows with the model at a checkpoint.
#include <filesystem>
#include <fstream>

#include "core/run/checkpoint.h"
#include "core/setup/initialize.h"
#include "core/train/resources.h"
#include "core/train/write_checkpoint.h"
#include "tests/catch.h"
#include "tests/runtime/allocations.h"
#include "tests/session_run.h"
#include "tests/slice.h"
#include "tests/train/steps.h"
#include "tests/train/tensors.h"

namespace pmaptrain::testing {
namespace {

const std::string dense_model =
    "model.layers=[flatten, {dense: 512}, relu, {dense: 1536}, relu, {dense: 3}]";  // 3.1 MiB of parameters

TEST_CASE("a checkpoint is written in slices: no copy of the parameters is made", "[train]") {
  const TemporaryFolder root;
  const setup::Setup setup = setup_of_text(small_images, {dense_model});
  const std::unique_ptr<Module> module = load_step(setup, {.workers = 1});
  setup::SlicedReader reader(*module);
  run::RunFolder folder = run::RunFolder::claim(root / "run", {});
  folder.begin("");
  const test::Heap heap =
      test::watch_heap([&] { train::write_checkpoint(folder, setup, {}, train::read_slices_of(reader)); });
  CHECK(std::filesystem::file_size(root / "run/checkpoints/last/params.safetensors") > 2'000'000);
  CHECK(heap.peak_bytes < 100'000);
  const test::Heap read = test::watch_heap([&] { run::load_parameters(root / "run/checkpoints/last"); });
  CHECK(read.peak_bytes < 100'000);
}

TEST_CASE("a run takes no more memory than is planned for it, at its start and at its checkpoint", "[train]") {
  const TemporaryFolder root;
  {
    const setup::Setup setup = setup_of_text(small_images, {dense_model});
    run::Tensors tensors;
    const setup::InitialValues values(setup.model, setup.spec().model, 0);
    for (const model::Parameter& parameter : setup.model.parameters) {
      tensors[parameter.name] = {DType::f32, parameter.shape, values.of(parameter)};
    }
    write_tensors(root / "initial.safetensors", tensors);
  }
  std::vector<std::vector<std::string>> cases = {
      {},
      {"train.eval_every=never"},
      {"mesh.axes={a: 1}"},
      {"optimizer={sgd: {}, learning_rate: 0.1}"},
      {"model.init={from: " + (root / "initial.safetensors") + "}"},
  };
  if (test::slices_with_sanitizer(2) == 1) {  // its drawing takes long with one
    cases.push_back(
        {"model.layers=[flatten, {dense: 512}, relu, {dense: {features: 1536, kernel_init: orthogonal}}, relu, dense: "
         "3]"});
  }
  for (std::vector<std::string> set : cases) {
    INFO((set.empty() ? "" : set.back()));
    set.insert(set.begin(), dense_model);
    const setup::Setup setup = setup_of_text(small_images, set);
    const setup::MemoryEstimate estimate =
        train::estimate_memory(setup, setup::backend_of(setup.spec().mesh)->plan(setup::run_source(setup))->needs());
    const auto planned = static_cast<std::int64_t>(estimate.total() - setup::library_bytes);
    CHECK(planned > 5'000'000);
    train_setup(setup);  // what the kernel library keeps for the process
    const test::Heap heap = test::watch_heap([&] {
      const TemporaryFolder folder;
      train::SessionOptions options;
      options.run_dir = folder / "run";
      train::train(setup, options, {});
    });
    // Half of what a copy of the parameters would add.
    constexpr std::int64_t half_a_copy = 3 << 19;
    CHECK(heap.peak_bytes < planned + half_a_copy);
    CHECK(static_cast<std::size_t>(half_a_copy) < setup::library_bytes);
  }
}

TEST_CASE("what a layer costs before the first step is counted: calls of the heap, and bytes at one time", "[train]") {
  const auto setup_of = [](int layers) {
    std::string text =
        "name: deep\nmesh: {axes: {devices: 2}}\ndata:\n  batch_size: 8\n"
        "  source: {synthetic_linear: {features: 1, examples_per_device: 8}}\n"
        "optimizer: {adam: {}, learning_rate: 0.001}\nloss: mean_squared_error\n"
        "train: {duration: 10 steps}\nmodel:\n  layers:\n";
    for (int i = 0; i < layers; ++i) text += "    - dense: 1\n";
    return setup_of_text(text);
  };
  const CpuBackend backend({.workers = 1});
  const auto planned = [&](int layers) {
    return test::watch_heap([&] {
      const setup::Setup setup = setup_of(layers);
      CHECK(backend.plan(setup::step_source(setup))->barriers_per_step(0) > 0);
    });
  };
  planned(1);
  const test::Heap few = planned(40), many = planned(140);
  CHECK((many.calls - few.calls) / 100 < 1500);
  CHECK((many.peak_bytes - few.peak_bytes) / 100 < 50'000);
  // What needs() makes to learn the kernels' scratch memory is gone when load() makes the kernels of the run.
  const setup::Setup setup = setup_of(140);
  const Source source = setup::step_source(setup);
  const test::Heap needs = test::watch_heap([&] { CHECK(backend.plan(source)->needs().total() > 0); });
  const test::Heap load = test::watch_heap([&] { CHECK(backend.load(source) != nullptr); });
  CHECK(needs.peak_bytes < load.peak_bytes);
}

}  // namespace
}  // namespace pmaptrain::testing
