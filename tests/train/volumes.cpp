// Windows over volumes, trained: whatever cuts the work leaves the same bits.
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/train/in_processes.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// Small images as volumes [3, 4, 3, 1], on their way down and up again. Biases whose gradients are nothing but
// roundings are left out.
setup::Setup volumes_setup(std::vector<std::string> set, const std::string& more = "") {
  set.push_back(
      "model.layers=[{reshape: [3, 4, 3, 1]}, {repeat: {times: 1, layers: [{residual: {layers: [{conv: {features: 4, "
      "kernel_size: [3, 2, 3], use_bias: false}}, {batch_norm: {momentum: 0.9}}, relu], shortcut: [{conv: {features: "
      "4, "
      "kernel_size: [1, 1, 1]}}]}}, {conv: {features: 1, kernel_size: [1, 3, 1]}}]" +
      more +
      "}}, {conv: {features: 4, kernel_size: [2, 2, 2]}}, {max_pool: {window_shape: [2, 2, 1], strides: [1, 2, 1]}}, "
      "{avg_pool: {window_shape: [2, 1, 2], strides: [1, 1, 1], padding: SAME, count_include_pad: false}}, "
      "{conv_transpose: {features: 3, kernel_size: [1, 2, 2], strides: [1, 2, 1]}}, {upsample: 2}, gelu, "
      "{parallel: {branches: [[global_max_pool], [global_avg_pool]], join: concat}}, {dense: 3}]");
  setup::Setup setup = setup_of_text(small_images, std::move(set));
  setup.warnings.clear();  // that a CPU is slow in bf16
  return setup;
}

const std::vector<std::vector<std::string>> volume_variations = {
    {}, {"data.microbatches=2"}, {"data.batch_size=10", "data.remainder=mask"}, {"precision=mixed_bfloat16"}};

}  // namespace

TEST_CASE("windows over volumes leave the same bits with any workers, remat and stage of FSDP", "[train]") {
  for (const std::vector<std::string>& set : volume_variations) {
    INFO((set.empty() ? "plain" : set.front()));
    const Trained kept = train_setup(volumes_setup(set));
    CHECK(train_setup(volumes_setup(set, ", remat: true")).same_bits(kept));
    std::vector<std::string> more = set;
    more.emplace_back("mesh.workers=3");
    CHECK(train_setup(volumes_setup(more)).same_bits(kept));
    more.back() = "parallelism.fsdp={axis: devices, stage: 3}";
    CHECK(train_setup(volumes_setup(more)).parameters == kept.parameters);
  }
}

TEST_CASE("windows over volumes leave the same bits on processes", "[train][placements]") {
  const setup::Setup setup = volumes_setup({"mesh.blocks=4", "data.batch_size=10", "data.remainder=mask"});
  const Trained expected = train_setup(setup);
  const TemporaryFolder root;
  const Ends ends = train_in_processes(2, root / "run", [&](int, Agreement&, train::SessionOptions&) { return setup; });
  for (const std::string& failure : ends.failures) CHECK(failure.empty());
  CHECK(ends.trained.same_bits(expected));
}

TEST_CASE("every backend trains volumes alike", "[train]") {
  const std::string backend = any_backend();
  check_same_training(train_setup(volumes_setup({backend})), train_setup(volumes_setup({"mesh.backend=reference"})),
                      {1e-5, 1e-4});
}
