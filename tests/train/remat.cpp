// `remat`: activations that the backward pass computes again.
#include <algorithm>

#include "core/analysis/cost.h"
#include "core/graph/text.h"
#include "core/setup/plan.h"
#include "tests/catch.h"
#include "tests/session_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// A network of blocks. `remat` says whether the backward pass computes them again.
std::string blocks(const std::string& remat) {
  return "model.layers=[{conv: {features: 4, kernel_size: [3, 3]}}, relu, "
         "{residual: {layers: [{conv: {features: 4, kernel_size: [3, 3]}}, {batch_norm: {momentum: 0.9}}, relu, "
         "{dropout: 0.3}]}, remat: " +
         remat +
         "}, {max_pool: {window_shape: [2, 2], strides: [2, 2]}}, flatten, "
         "{repeat: {times: 2, remat: " +
         remat + ", layers: [{residual: {layers: [layer_norm, {dense: 36}, gelu, {dense: 36}]}}]}}, {dense: 3}]";
}

setup::Setup network(const std::string& remat, std::vector<std::string> set) {
  set.push_back(blocks(remat));
  return setup_of_text(small_images, set);
}

// The bytes of the values of each device that cross a barrier.
double bytes_between(const setup::Setup& setup) {
  const std::vector<PoolReport> pools = setup::plan_run(setup, false).planned->needs().pools;
  const auto found =
      std::find_if(pools.begin(), pools.end(), [](const auto& pool) { return pool.name == "by device"; });
  REQUIRE(found != pools.end());
  return static_cast<double>(found->bytes);
}

int count(const std::string& text, const std::string& word) {
  int found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("activations that are computed again leave the same bits", "[train]") {
  const std::vector<std::vector<std::string>> variations = {
      {},
      {"data.microbatches=2"},
      {"data.batch_size=10", "data.remainder=mask"},
      {"precision=mixed_bfloat16"},
      {"mesh.axes=[{a: 2}, {b: 2}]", "mesh.blocks=2"},
      {"mesh.axes=[{a: 2}, {b: 2}]", "ensemble={axis: a, vary: {seed: [0, 1]}}"},
  };
  for (const std::vector<std::string>& set : variations) {
    INFO((set.empty() ? "plain" : set.front()));
    const Trained kept = train_setup(network("false", set));
    CHECK(train_setup(network("true", set)).same_bits(kept));
  }
}

TEST_CASE("a step that computes activations again is cut into the pieces of one that keeps them", "[train]") {
  const setup::Setup kept = network("false", {}), again = network("true", {});
  CHECK(again.training_work == work_of(*kept.training));
  CHECK(work_of(*again.training) > again.training_work);
}

TEST_CASE("every backend computes activations again", "[train]") {
  const std::string backend = any_backend();
  check_same_training(train_setup(network("true", {backend})), train_setup(network("false", {backend})));
}

TEST_CASE("statistics and sums over rows are kept, and everything else of a block is computed again", "[train]") {
  const auto text = [](const std::string& remat) { return to_text(*network(remat, {}).training); };
  const std::string kept = text("false"), again = text("true");
  CHECK(count(kept, "optimization_barrier") == 0);
  CHECK(count(again, "= conv") == count(kept, "= conv") + 1);
  CHECK(count(again, "= max_pool ") == count(kept, "= max_pool "));
  // In each of the two times, the first product; the results of the last product are not read.
  CHECK(count(again, "= matmul") == count(kept, "= matmul") + 2);
  CHECK(count(again, "random_uniform") == count(kept, "random_uniform") + 1);
  CHECK(count(again, "= reduce_sum[dims=[0, 1, 2]") == count(kept, "= reduce_sum[dims=[0, 1, 2]"));
}

TEST_CASE("a deep network whose blocks are computed again needs less memory for activations", "[train]") {
  const auto deep = [](const std::string& remat) {
    return setup_of_text(small_images, {"data.batch_size=64", "data.source.synthetic_images.train=64",
                                        "model.layers=[flatten, {dense: 64}, {repeat: {times: 12, remat: " + remat +
                                            ", layers: [{residual: {layers: [{dense: 64}, {batch_norm: {axes: "
                                            "[devices]}}, relu, {dense: 64}, {batch_norm: {axes: [devices]}}, relu, "
                                            "{dense: 64}]}}]}}, {dense: 3}]"});
  };
  const double kept = bytes_between(deep("false")), again = bytes_between(deep("true"));
  INFO(kept << " bytes, computed again " << again);
  CHECK(again < 0.6 * kept);
}
