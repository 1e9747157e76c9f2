// Shards along some axes of the data change no bit of a run of random layers.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/slice.h"
#include "tests/step/random_runs.h"
#include "tests/train/in_processes.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

setup::Setup setup_without_warnings(const std::string& config, const std::vector<std::string>& set) {
  setup::Setup setup = setup_of_text(config, set);
  setup.warnings.clear();
  return setup;
}

}  // namespace

TEST_CASE("random trees of layers have the same bits with shards along some axes of the data", "[step]") {
  for (const std::uint32_t seed : test::some_seeds(6, 960, 120)) {
    const RandomRun run = RunWriter(seed).write();
    INFO("seed " << seed << "\n" << run.config << run.shards);
    const Trained plain = train_setup(setup_without_warnings(run.config, {}));
    CHECK(train_setup(setup_without_warnings(run.config, {run.shards})).same_bits(plain));
  }
}

TEST_CASE("random trees of layers have the same bits in several processes with shards along some axes of the data",
          "[step][placements]") {
  for (const std::uint32_t seed : test::some_seeds(4, 480, 120)) {
    RunWriter writer(seed);
    const RandomRun run = writer.write();
    if (run.blocks == 1) continue;
    const auto processes = static_cast<int>(2 + writer.below(std::min(run.blocks, 4u) - 1));
    INFO("seed " << seed << ", " << processes << " processes\n" << run.config << run.shards);
    const Trained plain = train_setup(setup_without_warnings(run.config, {}));
    const TemporaryFolder root;
    const Ends ends = train_in_processes(processes, root / "run", [&](int, Agreement&, train::SessionOptions&) {
      return setup_without_warnings(run.config, {run.shards});
    });
    for (const std::string& failure : ends.failures) CHECK(failure == "");
    CHECK(ends.trained.same_bits(plain));
  }
}
