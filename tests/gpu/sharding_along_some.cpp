// Shards along some of the axes of the data on GPUs that add in a fixed order.
#include <map>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/emulated_gpu/platform.h"
#include "tests/gpu/gpus.h"
#include "tests/session_run.h"
#include "tests/slice.h"
#include "tests/step/random_runs.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

TEST_CASE("shards along some axes of the data have the bits of plain data parallelism on deterministic GPUs", "[gpu]") {
  test::Slice slice(2);
  std::map<int, Trained> of_blocks;
  for (const int count : {1, 2, 4}) {
    for (const int blocks : {2, 8}) {
      if (blocks < count) continue;
      std::vector<std::string> set{
          "mesh.axes=[{hosts: 2}, {shards: 4}]",
          "data.axes=[hosts, shards]",
          "mesh.backend=cuda",
          "mesh.deterministic=true",
          "mesh.workers=" + std::to_string(count),
          "mesh.blocks=" + std::to_string(blocks),
          "model.layers=[flatten, {dense: 900}, relu, {dense: 70}, {batch_norm: {}}, {dense: 3}]",
          "optimizer.clip_by_global_norm=0.1",
          "train.duration=3 steps"};
      const test::WithGpus gpus(test::make_emulated({.devices = count}));
      const Trained plain = train_setup(setup_of_text(small_images, set));
      CHECK(plain.ended.exit_status == 0);
      CHECK(of_blocks.try_emplace(blocks, plain).first->second.same_bits(plain));  // whatever the number of GPUs
      for (const char* const axis : {"hosts", "shards"}) {
        for (const int stage : {2, 3}) {
          if (!slice.takes()) continue;
          INFO(count << " GPUs, " << blocks << " blocks, stage " << stage << " along " << axis);
          set.push_back("parallelism.fsdp={axis: " + std::string(axis) + ", stage: " + std::to_string(stage) + "}");
          CHECK(train_setup(setup_of_text(small_images, set)).same_bits(plain));
          set.pop_back();
        }
      }
    }
  }
  CHECK_FALSE(of_blocks[2].same_bits(of_blocks[8]));
}

TEST_CASE("random trees of layers have the same bits with shards along some axes of the data on deterministic GPUs",
          "[gpu]") {
  for (const std::uint32_t seed : test::some_seeds(2, 240, 120)) {
    const RandomRun run = RunWriter(seed).write();
    INFO("seed " << seed << "\n" << run.config << run.shards);
    const int gpus = seed % 2 == 0 && run.blocks % 2 == 0 ? 2 : 1;
    const test::WithGpus emulated(test::make_emulated({.devices = gpus}));
    const auto trained = [&](std::vector<std::string> set) {
      set.insert(set.end(), {"mesh.backend=cuda", "mesh.deterministic=true", "mesh.workers=" + std::to_string(gpus)});
      setup::Setup setup = setup_of_text(run.config, set);
      setup.warnings.clear();
      return train_setup(setup);
    };
    const Trained plain = trained({});
    CHECK(trained({run.shards}).same_bits(plain));
  }
}
