// What a process does in the steady state: allocations, barriers of workers, threads.
#include <cstdlib>
#include <filesystem>

#include "tests/catch.h"
#include "tests/runtime/allocations.h"
#include "tests/session_run.h"
#include "tests/threads.h"
#include "tests/train/steps.h"

namespace pmaptrain::testing {
namespace {

namespace fs = std::filesystem;

TEST_CASE("the heap is watched below operator new, and its peak is what was held at one time", "[train]") {
  const test::Heap heap = test::watch_heap([] {
    void* volatile held = std::malloc(50'000);  // volatile: a compiler leaves out what nobody looks at
    for (int i = 0; i < 3; ++i) {
      void* volatile more = std::calloc(1000, 100);
      std::free(more);
    }
    std::free(held);
  });
  CHECK(heap.calls == 4);
  CHECK(heap.peak_bytes >= 150'000);
  CHECK(heap.peak_bytes < 151'000);
  CHECK(test::watch_heap([] {}).calls == 0);
}

TEST_CASE("the kernel library allocates as often in one step as in every other", "[train]") {
  const setup::Setup setup = small_cnn();
  for (const int workers : {1, 2}) {
    const std::unique_ptr<Module> module = load_step(setup, {.workers = workers});
    take_steps(*module, 2);  // threads have what they keep
    const std::int64_t once = test::watch_heap([&] { take_steps(*module); }).calls;
    for (int i = 0; i < 4; ++i) CHECK(test::watch_heap([&] { take_steps(*module); }).calls == once);
    CHECK(test::watch_heap([&] { take_steps(*module, 5); }).calls == 5 * once);
  }
}

TEST_CASE("between two logs a run allocates what the kernel library does, and nothing of its own", "[train]") {
  const setup::Setup setup =
      small_cnn({"data.source.synthetic_images.train=160", "train.log_every=never", "train.duration=10 steps"});
  const std::unique_ptr<Module> module = load_step(setup);
  take_steps(*module, 2);
  const std::int64_t once = test::watch_heap([&] { take_steps(*module); }).calls;

  std::vector<std::int64_t> after(11);
  train::SessionOptions options;
  options.between_steps = [&](Module&, std::int64_t step) {
    after[static_cast<std::size_t>(step)] = test::heap_calls();
  };
  const TemporaryFolder directory;
  options.run_dir = directory / "run";
  test::watch_heap([&] { train::train(setup, options, {}); });
  // The first step is logged, as is the last; the loader fills batches ahead all the while.
  for (std::size_t step = 3; step < 10; ++step) CHECK(after[step] - after[step - 1] == once);
}

TEST_CASE("workers meet as often as the plan says", "[train]") {
  for (const char* const config : {"linear_regression.yaml", "cnn.yaml"}) {
    const bool images = std::string(config) == "cnn.yaml";
    const setup::Setup setup = images ? small_cnn() : setup_of_config(config);
    for (const int workers : {2, 3}) {
      INFO(config << ", workers " << workers);
      CpuModule module(setup::step_source(setup), {.workers = workers});  // of zeros
      const auto barriers = [&](std::int64_t steps) {
        const std::uint32_t before = module.barriers_passed();
        take_steps(module, steps);
        return static_cast<std::int64_t>(module.barriers_passed() - before);
      };
      const std::int64_t planned = CpuBackend().plan(setup::step_source(setup))->barriers_per_step(setup::train_entry);
      CHECK(planned >= 1);
      CHECK(barriers(1) == planned);
      CHECK(barriers(10) == 10 * planned);
    }
  }
}

TEST_CASE("libraries are asked for the same shapes, whatever the number of workers", "[train]") {
  for (const std::string& config : shipped_configs()) {
    INFO(config);
    const setup::Setup setup = setup_of_config(config);
    std::string expected;
    for (const int workers : {1, 2, 3, 5, 16}) {
      const CpuModule module(setup::run_source(setup), {.workers = workers});
      std::string shapes;
      for (std::size_t e = 0; e < module.source().entries.size(); ++e) shapes += module.kernel_shapes(e);
      CHECK_FALSE(shapes.empty());
      if (expected.empty()) expected = shapes;
      CHECK(shapes == expected);
    }
  }
}

TEST_CASE("a process that trains has threads for its workers, two loaders and checkpoints, and no other", "[train]") {
  const std::int64_t before = test::settled_threads();
  for (const char* const workers : {"1", "2", "3"}) {
    std::vector<std::int64_t> threads;
    train::SessionOptions options;
    options.between_steps = [&](Module&, std::int64_t) { threads.push_back(test::threads_of_process()); };
    train_setup(small_cnn({std::string("mesh.workers=") + workers, "train.duration=8 steps"}), options);
    // Evaluation has a loader of its own, which waits meanwhile: no thread that a run needs is started once it has
    // begun.
    CHECK(threads == std::vector<std::int64_t>(8, before + std::stoi(workers) - 1 + 3));
  }
  CHECK(test::settled_threads() == before);
}

}  // namespace
}  // namespace pmaptrain::testing
