// Branches, class tokens and positions that are taken, trained: whatever cuts the work leaves the same bits.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/train/in_processes.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// Images on their way down and up again, as in a U-Net, and a sequence of their positions. `more` stands beside the
// branches. Biases whose gradients are nothing but roundings, which adam would enlarge, are left out.
std::string branched_layers(const std::string& more = "") {
  const std::string down =
      "{max_pool: {window_shape: [2, 2], strides: [2, 2]}}, "
      "{conv: {features: 4, kernel_size: [3, 3], use_bias: false}}, {batch_norm: {momentum: 0.9}}, relu";
  const std::string up = "{dropout: 0.2}, flatten, {dense: 72}, {reshape: [6, 6, 2]}";
  const std::string gate = "global_avg_pool, {dense: 5}, sigmoid";
  const std::string wide = "{conv: {features: 4, kernel_size: [1, 3]}}, gelu";
  return "model.layers=[{conv: {features: 3, kernel_size: [3, 3]}}, relu, {parallel: {branches: {skip: [], deep: [" +
         down + ", " + up + "]}, join: concat}" + more + "}, {parallel: {branches: [[], [" + gate +
         "]], join: multiply}" + more + "}, {parallel: {branches: [[{dense: 4}], [" + wide +
         "], [global_avg_pool, {dense: 4}]], join: add}" + more +
         "}, {reshape: [36, 4]}, class_token, "
         "{residual: {layers: [layer_norm, {attention: {heads: 2, use_bias: false}}]}}, {take: first}, {dense: 3}]";
}

setup::Setup branched_images(std::vector<std::string> set, const std::string& more = "") {
  set.push_back(branched_layers(more));
  setup::Setup setup = setup_of_text(small_images, std::move(set));
  setup.warnings.clear();  // that a CPU is slow in bf16
  return setup;
}

const std::vector<std::vector<std::string>> branch_variations = {
    {},
    {"data.microbatches=2"},
    {"data.batch_size=10", "data.remainder=mask"},
    {"precision=mixed_bfloat16"},
    {"mesh.axes=[{a: 2}, {b: 2}]",
     "ensemble={axis: a, vary: {seed: [0, 1], model.layers.2.parallel.branches.deep.4.dropout.rate: [0.1, 0.3]}}"},
};

}  // namespace

TEST_CASE("branches that are computed again, and any number of workers, leave the same bits", "[train]") {
  for (const std::vector<std::string>& set : branch_variations) {
    INFO((set.empty() ? "plain" : set.front()));
    const Trained kept = train_setup(branched_images(set));
    CHECK(train_setup(branched_images(set, ", remat: true")).same_bits(kept));
    std::vector<std::string> more = set;
    more.emplace_back("mesh.workers=3");
    CHECK(train_setup(branched_images(more)).same_bits(kept));
  }
}

TEST_CASE("branches leave the same bits with every stage of FSDP", "[train]") {
  for (const std::vector<std::string>& set : {branch_variations[0], branch_variations[2], branch_variations[3]}) {
    INFO((set.empty() ? "plain" : set.front()));
    const Trained whole = train_setup(branched_images(set));
    for (const char* const stage : {"1", "2", "3"}) {
      std::vector<std::string> sharded = set;
      sharded.push_back("parallelism.fsdp={axis: devices, stage: " + std::string(stage) + "}");
      INFO("stage " << stage);
      CHECK(train_setup(branched_images(sharded)).parameters == whole.parameters);
    }
  }
}

TEST_CASE("branches leave the same bits on processes", "[train][placements]") {
  const setup::Setup setup = branched_images({"mesh.blocks=4", "data.batch_size=10", "data.remainder=mask"});
  const Trained expected = train_setup(setup);
  for (const int processes : {2, 4}) {
    const TemporaryFolder root;
    const Ends ends =
        train_in_processes(processes, root / "run", [&](int, Agreement&, train::SessionOptions&) { return setup; });
    for (const std::string& failure : ends.failures) CHECK(failure.empty());
    CHECK(ends.trained.same_bits(expected));
  }
}

TEST_CASE("every backend trains branches alike", "[train]") {
  const std::string backend = any_backend();
  check_same_training(train_setup(branched_images({backend})), train_setup(branched_images({"mesh.backend=reference"})),
                      {1e-5, 1e-4});
  const std::string mixed = "precision=mixed_bfloat16";
  check_same_training(train_setup(branched_images({backend, mixed})),
                      train_setup(branched_images({"mesh.backend=reference", mixed})), {5e-2, 5e-2});
}

TEST_CASE("a network of branches learns small images", "[train]") {
  const Trained trained = train_setup(branched_images({"train.duration=60 steps", "train.eval_every=60 steps"}));
  const run::Measures& test = trained.result().final_measures.back().second;
  const auto accuracy = std::find_if(test.begin(), test.end(), [](const auto& one) { return one.first == "accuracy"; });
  REQUIRE(accuracy != test.end());
  CHECK(accuracy->second > 0.8);
}
