// The moving average of the parameters: how a step keeps it, and an evaluation with it.
#include <cmath>

#include "core/setup/setup.h"
#include "core/setup/values.h"
#include "tests/catch.h"
#include "tests/model/fixture.h"
#include "tests/session_run.h"
#include "tests/train/steps.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

Numbers read(Module& module, const std::string& name) { return setup::to_doubles(module, module.input(name)); }

void write(Module& module, const std::string& name, const Numbers& values) {
  const std::vector<std::byte> bytes = to_bytes(values, DType::f32);
  module.wait(module.write(module.input(name), every_device, bytes));
}

}  // namespace

TEST_CASE("a step averages its new parameters; one that is skipped leaves the average alone", "[train]") {
  const setup::Setup setup = setup_of_text(
      small_images, {"train.ema.decay=0.75", "train.on_nonfinite=skip", "model.layers=[flatten, {dense: 3}]"});
  REQUIRE(setup.roles.ema.size() == setup.model.parameters.size());
  for (std::size_t i = 0; i < setup.roles.ema.size(); ++i) {
    CHECK(variables_of(*setup.training).at(setup.roles.ema[i]).name == "ema/" + setup.model.parameters[i].name);
  }
  const std::unique_ptr<Module> module = load_step(setup);
  Numbers expected(read(*module, "ema/dense_0.bias").size(), 0.0);
  CHECK(read(*module, "ema/dense_0.bias") == expected);
  for (int step = 0; step < 3; ++step) {
    take_steps(*module);
    const Numbers bias = read(*module, "dense_0.bias"), average = read(*module, "ema/dense_0.bias");
    for (std::size_t i = 0; i < bias.size(); ++i) {
      expected[i] = 0.75 * expected[i] + 0.25 * bias[i];
      CHECK(average[i] == Approx(expected[i]).epsilon(1e-5).margin(1e-9));
    }
  }
  const Numbers before = read(*module, "ema/dense_0.bias");
  write(*module, "dense_0.bias", {HUGE_VAL, 0.0, 0.0});
  take_steps(*module);
  CHECK(read(*module, "ema/dense_0.bias") == before);
}

TEST_CASE("without train.ema a program has no average", "[train]") {
  const setup::Setup setup = setup_of_text(small_images);
  CHECK(setup.roles.ema.empty());
  for (const Variable& variable : variables_of(*setup.training)) CHECK_FALSE(variable.name.starts_with("ema/"));
}

TEST_CASE("an evaluation uses the average, debiased by what the host writes", "[train]") {
  const Mesh mesh({{"devices", 2}});
  Network net = network({layer("dense_0", layers::Dense{2})});
  const model::Model model = model::make_model(net, {DType::f32, {2}}, labels);
  const Feed batch{{"inputs", {1, 0, 0, 1, 1, 0, 9, 9}}, {"targets", {0, 0, 0, 1}}, {"mask", {1, 1, 1, 0}}};
  const Numbers kernel{1.5, -0.5, 0.25, 2.0}, bias{0.5, -1.0};
  const std::vector<model::Bucket> buckets{{"bucket_0", {0, 1}}};
  const auto loss = [&](model::Weights weights, const Feed& values) {
    Feed feed = batch;
    feed.insert(values.begin(), values.end());
    const Program program = model::evaluation_program(model, mesh, mesh.all(), 2, all_ops(), weights, buckets);
    return results_of(program, feed).at("loss").front();
  };
  const double raw = loss(model::Weights::raw, {{"dense_0.kernel", kernel}, {"dense_0.bias", bias}});
  CHECK(loss(model::Weights::ema, {{"ema/dense_0.kernel", kernel}, {"ema/dense_0.bias", bias}}) == raw);
  Numbers small_kernel = kernel, small_bias = bias;
  for (double& value : small_kernel) value *= 0.25;
  for (double& value : small_bias) value *= 0.25;
  CHECK(loss(model::Weights::debiased_ema,
             {{"ema/dense_0.kernel", small_kernel}, {"ema/dense_0.bias", small_bias}, {"ema/correction", {0.25}}}) ==
        raw);
  CHECK(model::weights_of({}) == model::Weights::raw);
  CHECK(model::weights_of(optimizers::Ema{0.9, true}) == model::Weights::debiased_ema);
  CHECK(model::weights_of(optimizers::Ema{0.9, false}) == model::Weights::ema);
}
