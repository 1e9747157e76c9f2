// The buckets of a training step: which parameters are stored together, and that no value depends on it.
#include <string>
#include <vector>

#include "core/graph/text.h"
#include "core/ops/all.h"
#include "core/step/optimizer.h"
#include "tests/catch.h"
#include "tests/session_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// A chain of dense layers.
std::string dense_layers(int layers) {
  std::string text = "model.layers=[flatten";
  for (int i = 1; i < layers; ++i) text += ", {dense: 7}, relu";
  return text + ", {dense: 3}]";
}

// The equations behind the sum over devices.
std::size_t equations_after_psum(const Program& program) {
  std::size_t after = 0;
  for (const Equation& equation : program.equations) {
    after = equation.op.rules().communication == Communication::sum ? 0 : after + 1;
  }
  return after;
}

std::vector<std::string> names_in(const model::Model& model, const model::Bucket& bucket) {
  std::vector<std::string> names;
  for (const std::size_t i : bucket.parameters) names.push_back(model.parameters[i].name);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("what follows the sum of the gradients is as long for two layers as for thirteen", "[step]") {
  const std::vector<std::vector<std::string>> configs{{},
                                                      {"optimizer.sgd={momentum: 0.9}"},
                                                      {"optimizer.clip=0.1", "optimizer.clip_by_global_norm=1"},
                                                      {"train.ema={decay: 0.9}"},
                                                      {"precision=mixed_bfloat16", "data.microbatches=2"}};
  for (const std::vector<std::string>& config : configs) {
    const auto equations = [&](int layers) {
      std::vector<std::string> set = config;
      set.push_back(dense_layers(layers));
      return equations_after_psum(*setup_of_text(small_images, set).training);
    };
    INFO((config.empty() ? "adam" : config.front()));
    CHECK(equations(2) > 4);
    CHECK(equations(2) == equations(13));
  }
}

TEST_CASE("the text of a step with buckets parses back to the same program", "[step]") {
  for (const char* const ema : {"train.ema={decay: 0.9}", "train.log_every=1 step"}) {
    const setup::Setup setup = setup_of_text(
        small_images, {"optimizer.adamw={weight_decay: 0.1}", "optimizer.weight_decay_exclude='*.bias'", ema});
    const std::string text = to_text(*setup.training);
    CHECK(text.find(" of %") != std::string::npos);
    const Program again = parse_program(text, "step.pmt", all_ops());
    CHECK(to_text(again) == text);
    CHECK(again.inputs.front().parts == setup.training->inputs.front().parts);
  }
}

TEST_CASE("a bucket has the parameters of one rule, the last of the model first, and none that is frozen", "[step]") {
  const auto buckets = [](std::vector<std::string> set) {
    set.push_back(dense_layers(3));
    const setup::Setup setup = setup_of_text(small_images, std::move(set));
    std::vector<Names> names;
    for (const model::Bucket& bucket : step::buckets_of(setup.model, setup.optimizer(), {})) {
      names.push_back(names_in(setup.model, bucket));
    }
    return names;
  };
  CHECK(buckets({}) == std::vector<Names>{{"dense_2.bias", "dense_2.kernel", "dense_1.bias", "dense_1.kernel",
                                           "dense_0.bias", "dense_0.kernel"}});
  CHECK(buckets({"optimizer.adamw={weight_decay: 0.1}", "optimizer.weight_decay_exclude='*.bias'"}) ==
        std::vector<Names>{{"dense_2.bias", "dense_1.bias", "dense_0.bias"},
                           {"dense_2.kernel", "dense_1.kernel", "dense_0.kernel"}});
  CHECK(buckets({"optimizer.groups=[{parameters: dense_1.*, freeze: true}]"}) ==
        std::vector<Names>{{"dense_2.bias", "dense_2.kernel", "dense_0.bias", "dense_0.kernel"}});
}

TEST_CASE("no bit of a run depends on how its parameters are divided into buckets", "[step]") {
  for (const char* const clip : {"optimizer.clip=10", "optimizer.clip_by_global_norm=0.01"}) {
    INFO(clip);
    const std::vector<std::string> set{dense_layers(4), clip, "train.ema={decay: 0.9}", "train.duration=6 steps",
                                       "train.log_every=1 step"};
    const Trained one = train_setup(setup_of_text(small_images, set));
    // A scale of 1 changes no rate, but each has a bucket of its own.
    for (const char* const groups :
         {"optimizer.groups=[{parameters: '*.bias', learning_rate_scale: 1}]",
          "optimizer.groups=[{parameters: dense_1.*, learning_rate_scale: 1}, {parameters: dense_3.bias, "
          "learning_rate_scale: 1}, {parameters: dense_0.kernel, learning_rate_scale: 1}]"}) {
      INFO(groups);
      std::vector<std::string> apart = set;
      apart.emplace_back(groups);
      const setup::Setup setup = setup_of_text(small_images, apart);
      REQUIRE(step::buckets_of(setup.model, setup.optimizer(), {}).size() > 1);
      const Trained several = train_setup(setup);
      CHECK(several.parameters == one.parameters);
      const auto norms = [](const Trained& trained) {
        std::vector<double> found;
        for (const run::Logged& logged : trained.of<run::Logged>()) found.push_back(logged.grad_norm);
        return found;
      };
      CHECK(norms(several) == norms(one));
    }
  }
}
