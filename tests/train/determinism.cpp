// The same config gives the same bits on any number of workers, and with a private copy of everything on each device.
#include "tests/catch.h"
#include "tests/session_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

void check_same_bits(setup::Setup setup, KernelChoice kernels) {
  train::SessionOptions options;
  options.kernels = kernels;
  setup.loaded.spec.mesh.workers = 1;
  const Trained one = train_setup(setup, options);
  REQUIRE_FALSE(one.parameters.empty());
  REQUIRE(one.state.contains("step"));
  REQUIRE_FALSE(one.metrics.empty());
  for (const int workers : {2, 3, 5}) {
    INFO(workers << " workers");
    setup.loaded.spec.mesh.workers = workers;
    CHECK(train_setup(setup, options).same_bits(one));
  }
  INFO("private copies");
  setup.loaded.spec.mesh.workers = 2;
  options.verify_replicas = true;
  const Trained copies = train_setup(setup, options);
  CHECK(copies.ended.reason == one.ended.reason);
  CHECK(copies.same_bits(one));
}

void check_shipped_configs(KernelChoice kernels) {
  for (const std::string& config : shipped_configs()) {
    INFO(config);
    check_same_bits(shortened(config, kernels), kernels);
  }
}

}  // namespace

TEST_CASE("every shipped config gives the same bits on any number of workers, with library kernels",
          "[train][determinism]") {
  check_shipped_configs(KernelChoice::best);
}

TEST_CASE("every shipped config gives the same bits on any number of workers, with reference kernels",
          "[train][determinism]") {
  check_shipped_configs(KernelChoice::reference);
}

TEST_CASE("microbatches, masks, dropout, optimizers and meshes keep the same bits on any number of workers",
          "[train][determinism]") {
  const std::vector<std::vector<std::string>> variations = {
      {"data.microbatches=2"},
      {"data.batch_size=10", "data.remainder=mask"},
      {"data.batch_size=10", "data.remainder=mask", "data.microbatches=3"},
      {"model.layers=[flatten, {dense: 8}, {dropout: 0.4}, gelu, {dense: 3}]", "data.microbatches=2"},
      {"optimizer.sgd={}"},
      {"optimizer.sgd={momentum: 0.9}"},
      {"optimizer.sgd={momentum: 0.9, nesterov: true}"},
      {"optimizer.adamw={}"},
      {"mesh.axes=[{a: 2}, {b: 3}]", "data.batch_size=12"},
      {"mesh.axes=[{a: 3}, {b: 1}, {c: 2}]", "data.batch_size=12", "data.microbatches=2"},
      {"mesh.axes={a: 1}"},
      {"mesh.axes={a: 13}", "data.remainder=mask"},
      {"precision=mixed_bfloat16"},
      {"precision=mixed_bfloat16", "data.microbatches=2", "train.ema={decay: 0.9}"},
  };
  for (const std::vector<std::string>& set : variations) {
    INFO(set.front());
    const setup::Setup setup = setup_of_text(small_images, set);
    check_same_bits(setup, KernelChoice::best);
    check_same_bits(setup, KernelChoice::reference);
  }
}

namespace {

// Examples of which normalisation leaves little, and zeros would leave squares that overflow.
const std::string far_from_zero = R"(
data:
  source: {values: {inputs: [[1.0e+30, 2.0], [1.0e+30, -1.0], [1.0e+30, 0.5], [1.0e+30, 4.0], [1.0e+30, 3.0],
    [1.0e+30, 1.0]], targets: [[0.5], [1], [2], [-1], [0], [3]]}}
  remainder: mask
  normalize: {mean: [1.0e+30, 0.0], std: [1.0, 1.0]}
model: {layers: [{dense: 4}, {dropout: 0.4}, {dense: 1}]}
loss: mean_squared_error
metrics: [r2, mean_absolute_error]
optimizer: {adam: {}, learning_rate: 0.01}
train: {duration: 6 steps, log_every: 1 step}
)";

Trained trained_on(int devices, int batch) {
  return train_setup(setup_of_text(
      far_from_zero, {"mesh.axes={d: " + std::to_string(devices) + "}", "data.batch_size=" + std::to_string(batch)}));
}

}  // namespace

TEST_CASE("devices that hold nothing but padding change no bit", "[train][determinism]") {
  const Trained two = trained_on(2, 2);
  REQUIRE(two.ended.exit_status == 0);
  for (const int devices : {3, 4, 7}) {
    INFO(devices << " devices");
    CHECK(trained_on(devices, 2).same_bits(two));
  }
}

TEST_CASE("padding is finite where the examples are", "[train][determinism]") {
  const Trained whole = trained_on(1, 3), padded = trained_on(2, 3);
  REQUIRE(padded.ended.exit_status == 0);
  const auto expected = whole.of<run::Logged>(), found = padded.of<run::Logged>();
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (std::size_t m = 0; m < found[i].measures.size(); ++m) {
      INFO(found[i].measures[m].first << " of step " << found[i].step);
      CHECK(found[i].measures[m].second == Approx(expected[i].measures[m].second).epsilon(1e-5));
    }
  }
}
