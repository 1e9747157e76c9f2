// The table of parallelism.fsdp in `validate`.
#include "core/report/sharding.h"

#include "core/base/text.h"
#include "core/report/plan_report.h"
#include "core/setup/plan.h"
#include "tests/catch.h"
#include "tests/session_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

TEST_CASE("along some of the axes of the data a device receives its part of the gradients alone", "[report]") {
  const setup::Setup setup = setup_of_text(
      small_images, {"mesh.axes=[{a: 2}, {b: 2}]", "data.axes=[a, b]", "parallelism.fsdp={axis: b, stage: 2}"});
  const std::vector<report::ShardingStage> stages = report::stages_of_sharding(setup);
  CHECK(2 * stages[2].gradients == stages[1].gradients);
  CHECK(stages[2].state < stages[0].state);
}

TEST_CASE("GPUs that add in a fixed order receive parts of gradients that divide equally among all of them",
          "[report]") {
  const auto gradients_with = [](const std::string& a, const std::string& axis) {
    const setup::Setup setup =
        setup_of_text(small_images, {"mesh.axes=[{a: " + a + "}, {b: 2}]", "data.axes=[a, b]", "data.batch_size=28",
                                     "mesh.backend=cuda", "mesh.deterministic=true", "mesh.workers=2",
                                     "parallelism.fsdp={axis: " + axis + ", stage: 2}"});
    const std::vector<report::ShardingStage> stages = report::stages_of_sharding(setup);
    return static_cast<double>(stages[1].gradients) / static_cast<double>(stages[2].gradients);
  };
  CHECK(gradients_with("2", "b") == 2);
  CHECK(gradients_with("7", "b") == 1);
  CHECK(gradients_with("7", "[a, b]") == 14);
}

TEST_CASE("of large layers whole parameters of two groups are gathered at a time", "[report]") {
  const setup::Setup setup = setup_of_text(
      small_images, {"model.layers=[flatten, {dense: 512}, relu, {dense: 512}, relu, {dense: 512}, relu, {dense: 512}, "
                     "relu, {dense: 3}]",
                     "parallelism.fsdp={axis: devices, stage: 3}"});
  const std::vector<report::ShardingStage> stages = report::stages_of_sharding(setup);
  // The first group has layers of 36 * 512 and 512 * 512, and the second group has one of 512 * 512.
  const std::size_t first = 4 * (36 * 512 + 512 * 512 + 2 * 512), next = 4 * (512 * 512 + 512);
  CHECK(stages[3].gathered == first + next);
  CHECK(stages[2].gathered == 0);
  // The gradient of the first group needs no parameters again.
  CHECK(stages[3].sent > stages[2].sent);
  CHECK(stages[3].sent < 2 * stages[2].sent);
}

TEST_CASE("validate shows what each stage of sharding keeps on a device and sends", "[report]") {
  const setup::Setup plain = setup_of_text(small_images);
  CHECK(report::sharding_text(plain, 1, false).empty());
  // Small layers: 1,920 elements of 4 bytes for a kernel of 36 * 50 and a bias, and 192 for one of 50 * 3 and a bias.
  const setup::Setup setup =
      setup_of_text(small_images, {"model.layers=[flatten, {dense: 50}, relu, {dense: 3}]",
                                   "parallelism.fsdp={axis: devices, stage: 2}", "train.ema={decay: 0.9}"});
  const std::vector<report::ShardingStage> stages = report::stages_of_sharding(setup);
  REQUIRE(stages.size() == 4);
  const std::size_t whole = 4 * 2304, shard = whole / 4;  // padded from 2,176 elements to 4 shards of whole units
  CHECK(stages[1].parameters == whole);
  CHECK(stages[2].parameters == whole);
  CHECK(stages[3].parameters == shard);
  CHECK(stages[1].gradients == whole);
  CHECK(stages[2].gradients == shard);
  // Adam's two moments and the averages; the rest of the state is small.
  CHECK(stages[0].state - stages[1].state == 3 * (4 * 2176 - shard));
  CHECK(stages[1].state == stages[3].state);
  CHECK(report::sharding_text(setup, 1, false) ==
        "sharding: stage 2 along {devices}, 4 shards (stage 0 is plain data parallelism)\n"
        "  each device has         stage 0   stage 1  *stage 2   stage 3\n"
        "  parameters              8.5 KiB   9.0 KiB   9.0 KiB   2.2 KiB\n"
        "  gradients it receives   8.5 KiB   9.0 KiB   2.2 KiB   2.2 KiB\n"
        "  optimizer state        25.5 KiB   6.8 KiB   6.8 KiB   6.8 KiB\n"
        "  gathered at a time          0 B       0 B       0 B   9.0 KiB\n"
        "  sends in a step         8.5 KiB  11.4 KiB  11.4 KiB  11.4 KiB\n"
        "  padding: 128 of 2,304 elements, because each of 4 shards of a bucket has whole units of 64\n"
        "  all devices share the memory of one process, so this saves none; mpirun starts several\n\n");
}

TEST_CASE("validate says how much of a bucket that is smaller than its shards is padding", "[report]") {
  const auto said = [](const std::string& layers) {
    const std::string text = report::sharding_text(
        setup_of_text(small_images, {"model.layers=" + layers, "parallelism.fsdp={axis: devices, stage: 3}"}), 1, true);
    const std::size_t at = text.find("  padding");
    return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
  };
  // A bias and a kernel of 3 and 27 elements are two units of 64, and four shards have one each.
  CHECK(said("[{max_pool: {window_shape: [2, 2], strides: [2, 2]}}, flatten, {dense: 3}]") ==
        "  padding: 128 of 256 elements, because each of 4 shards of a bucket has whole units of 64");
  // A kernel of 36 * 7 elements and its bias, and one of 7 * 3 and its bias: 7 units.
  CHECK(said("[flatten, {dense: 7}, {dense: 3}]") ==
        "  padding: 64 of 512 elements, because each of 4 shards of a bucket has whole units of 64");
  CHECK(said("[flatten, {dense: {features: 7, use_bias: false}}]").empty());
}

TEST_CASE("validate says that shards of a table that is updated by rows have whole rows", "[report]") {
  const setup::Setup setup = setup_of_text(R"(
mesh: {axes: {shards: 4}}
data: {source: {npz: {file: tests/parity/data/tokens.npz, train: [x, y]}}, batch_size: 12}
model: {layers: [{embedding: {num_embeddings: 3001, features: 10}}, global_avg_pool, {dense: 3}]}
loss: softmax_cross_entropy
optimizer: {sgd: {}, learning_rate: 0.5}
train: {duration: 3 steps}
)",
                                           {"parallelism.fsdp={axis: shards, stage: 3}"});
  const std::string text = report::sharding_text(setup, 1, true);
  CAPTURE(text);
  CHECK(text.find("each of 4 shards of a bucket has whole units of 64, and of a table that is updated by rows whole "
                  "rows, too\n") != std::string::npos);
}

TEST_CASE("validate shows the planned memory of a process at each stage, and where stage 2 takes no less than stage 1",
          "[report]") {
  std::string layers = "model.layers=[flatten, ";
  for (int i = 0; i < 8; ++i) layers += "{dense: 512}, relu, ";
  layers += "{dense: 3}]";
  std::vector<std::string> set{"mesh.blocks=4", layers, "parallelism.fsdp={axis: devices, stage: 2}"};
  const setup::Setup setup = setup_of_text(small_images, set);
  const std::vector<report::ShardingStage> stages = report::stages_of_sharding(setup, 4);
  for (const report::ShardingStage& stage : stages) {
    INFO("stage " << stage.stage);
    REQUIRE(stage.process);
  }
  CHECK(*stages[2].process == report::make_validate_report(setup, false, 4).memory.total());
  CHECK(*stages[1].process < *stages[0].process);
  // Stage 1 has the whole gradients of seven groups of a layer each, and stage 2 those of the last three.
  CHECK(*stages[2].process + std::size_t{3} * 4 * 512 * 513 < *stages[1].process);
  CHECK(*stages[3].process < *stages[2].process);
  const std::string text = report::sharding_text(setup, 4, false);
  CHECK(text.find("  memory of this process") != std::string::npos);
  CHECK(text.find("stage 2 takes no less") == std::string::npos);
  set.push_back("data.microbatches=2");
  const setup::Setup in_loop = setup_of_text(small_images, set);
  CHECK(
      report::sharding_text(in_loop, 4, false)
          .find("  stage 2 takes no less memory of a process than stage 1: in both a process adds only its parts of "
                "large sums, but\n  first computes whole gradients; it takes less where a model has several groups of "
                "layers (262,144 parameters or more\n  each) and no microbatches\n") != std::string::npos);
  CHECK_FALSE(report::stages_of_sharding(setup).front().process);
}
