// Ensembles in a config: what each member has alone, and the words of every refusal.
#include <string>

#include "core/layers/dropout.h"
#include "core/layers/nested.h"
#include "core/losses/softmax_cross_entropy.h"
#include "core/optimizers/adam.h"
#include "core/optimizers/adamw.h"
#include "core/schedules/join.h"
#include "core/schedules/piecewise_constant.h"
#include "core/schedules/warmup_cosine_decay.h"
#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/spec/errors_of.h"

using namespace pmaptrain;

namespace {

const std::string two_axes = "mesh: {axes: [{replicas: 2}, {shards: 4}]}\n";

std::string with_ensemble(const std::string& ensemble, const std::string& config = base) {
  return two_axes + "ensemble: " + ensemble + "\n" + config;
}

spec::Spec spec_with(const std::string& text) { return spec::load_text(text, "c.yaml", "/base", {}).spec; }

}  // namespace

TEST_CASE("a member has its own values, the mesh without the ensemble's axis, and the data of all", "[spec]") {
  const spec::Spec spec = spec_with("seed: 7\n" + with_ensemble("{axis: replicas, vary: {seed: [3, 4]}}"));
  REQUIRE(spec.ensemble);
  CHECK(spec.ensemble->axis == "replicas");
  CHECK(spec.ensemble->vary.front().path == "seed");
  CHECK(spec.ensemble->vary.front().values == std::vector<std::string>{"3", "4"});
  CHECK(members(spec) == 2);
  CHECK(spec.seed == 7);
  CHECK(spec.mesh.mesh.devices() == 8);
  CHECK(spec.mesh.mesh.to_string(spec.mesh.roles.data) == "{shards}");
  CHECK(spec::member_mesh(spec) == Mesh({{"shards", 4}}));
  for (std::int64_t m = 0; m < 2; ++m) {
    const spec::Spec& member = spec::member_spec(spec, m);
    CHECK(member.seed == static_cast<std::uint64_t>(3 + m));
    CHECK(member.data.seed == 7u);
    CHECK(member.mesh.mesh == Mesh({{"shards", 4}}));
    CHECK(member.mesh.mesh.to_string(member.mesh.roles.data) == "{shards}");
    CHECK(!member.ensemble);
  }
}

TEST_CASE("data.seed varies apart from seed", "[spec]") {
  const spec::Spec spec = spec_with(with_ensemble("{axis: replicas, vary: {data.seed: [3, 4]}}"));
  CHECK(spec::member_spec(spec, 1).data.seed == 4u);
  CHECK(spec::member_spec(spec, 1).seed == 0);
}

TEST_CASE("the members of the only axis have one device", "[spec]") {
  const spec::Spec spec =
      spec_with("mesh: {axes: {replicas: 3}}\nensemble: {axis: replicas, vary: {seed: [0, 1, 2]}}\n" + base);
  CHECK(members(spec) == 3);
  CHECK(spec.mesh.roles.data.empty());
  CHECK(spec::member_spec(spec, 2).mesh.mesh == Mesh({{"devices", 1}}));
  CHECK(spec::member_spec(spec, 2).mesh.roles.data == AxisSet::of(0));
  CHECK(spec::member_mesh(spec) == Mesh({{"devices", 1}}));
}

TEST_CASE("without an ensemble the only member is the config itself", "[spec]") {
  const spec::Spec spec = spec_with(two_axes + base);
  CHECK(members(spec) == 1);
  CHECK(&spec::member_spec(spec, 0) == &spec);
  CHECK(spec::member_mesh(spec) == spec.mesh.mesh);
}

TEST_CASE("the resolved config keeps the ensemble", "[spec]") {
  const spec::Loaded loaded =
      spec::load_text(with_ensemble("{axis: replicas, vary: {data: {seed: [3, 4]}}}"), "c.yaml", "/base", {});
  CHECK(loaded.resolved.ends_with("\nensemble:\n  axis: replicas\n  vary: {data.seed: [3, 4]}\n"));
  CHECK(spec::load_text(loaded.resolved, "c.yaml", "/base", {}).resolved == loaded.resolved);
}

TEST_CASE("the resolved config says the order of the data that the members share", "[spec]") {
  const std::string text = "seed: 7\n" + with_ensemble("{axis: replicas, vary: {seed: [3, 4]}}");
  const spec::Loaded loaded = spec::load_text(text, "c.yaml", "/base", {});
  CHECK(loaded.spec.data.seed == 7u);
  CHECK(loaded.resolved.find("\n  seed: 7\n") != std::string::npos);
  CHECK(spec::load_text(loaded.resolved, "c.yaml", "/base", {}).resolved == loaded.resolved);
  spec::Overrides overrides;
  overrides.set = {"ensemble=null"};
  CHECK(spec::load_text(text, "c.yaml", "/base", overrides).resolved.find("\n  seed:") == std::string::npos);
}

TEST_CASE("an axis that the mesh has not is one mistake: the batch and the data's axes are not checked", "[spec]") {
  CHECK(errors_of(with_ensemble("{vary: {seed: [3, 4]}}"), {"data.batch_size=63"})
            .starts_with("c.yaml:2:1: error: axis is missing in ensemble\n"));
  const std::string other_mesh =
      errors_of(with_ensemble("{axis: replicas, vary: {seed: [3, 4]}}"), {"mesh.axes={parts: 5}"});
  CHECK(other_mesh == R"(c.yaml:2:18: error: the mesh has no axis 'replicas'
    2 | ensemble: {axis: replicas, vary: {seed: [3, 4]}}
      |                  ^~~~~~~~
  help: valid axes: parts; an axis of its own: mesh.axes=[{replicas: 4}, {parts: 5}]
  note: 'parts' is 5 because of --set mesh.axes={parts: 5}
)");
}

TEST_CASE("an option that sets the number of members is named where values are missing", "[spec]") {
  CHECK(errors_of("mesh: {axes: {replicas: 2}}\nensemble: {axis: replicas, vary: {seed: [3, 4]}}\n" + base, {}, 4)
            .ends_with("in order; the lists of several keys are paired\n"
                       "  note: 'replicas' is 4 because of --devices 4\n"));
}

TEST_CASE("a layer by index and by name is one layer", "[spec]") {
  CHECK(errors_of(with_ensemble("{axis: replicas, vary: {model.layers.1.dropout.rate: [0.1, 0.2], "
                                "model.layers.dropout_0.dropout.rate: [0.1, 0.2]}}"),
                  {"model.layers=[flatten, {dropout: 0.5}, {dense: 10}]"})
            .find("vary has 'model.layers.1.dropout.rate' twice, by index and by name") != std::string::npos);
}

TEST_CASE("numbers vary: of rules, schedules, groups, layers by index and name, and the loss", "[spec]") {
  const std::string numbers = R"(data: {source: fashion_mnist, batch_size: 128}
model: {layers: [flatten, {dropout: 0.1}, {layers: [{name: second, dropout: 0.2}]}, {dense: 10}]}
loss: {softmax_cross_entropy: {label_smoothing: 0.1}}
optimizer:
  adamw: {}
  learning_rate: {join: {schedules: [0.1, {warmup_cosine_decay: {peak_value: 0.1, warmup: 2}}], boundaries: [3]}}
  clip: 1.0
  groups: [{parameters: "*.bias", learning_rate_scale: 2.0, weight_decay: 0.1}]
train: {duration: 10 steps, ema: {}}
)";
  const spec::Spec spec = spec_with(with_ensemble(R"({axis: replicas, vary: {
  optimizer.adamw.b1: [0.8, 0], optimizer.adamw.weight_decay: [0.1, 0.2], optimizer.clip: [1, 2],
  optimizer.learning_rate.join.schedules.1.warmup_cosine_decay.peak_value: [0.2, 0.3],
  optimizer.groups.0.learning_rate_scale: [3, 4], model.layers.dropout_0.dropout.rate: [0.3, 0.4],
  model.layers.2.layers.second.dropout.rate: [0.5, 0.6], loss.softmax_cross_entropy.label_smoothing: [0.2, 0.3],
  train.ema.decay: [0.9, 0.99]}})",
                                                  numbers));
  for (const std::size_t m : {0u, 1u}) {
    const spec::Spec& member = spec::member_spec(spec, static_cast<std::int64_t>(m));
    const auto either = [&](double first, double second) { return m == 0 ? first : second; };
    const auto& rule = *member.optimizer.rule.as<optimizers::AdamW>();
    CHECK(rule.b1 == either(0.8, 0));
    CHECK(rule.weight_decay == either(0.1, 0.2));
    CHECK(member.optimizer.clip == either(1, 2));
    const auto& join = *member.optimizer.learning_rate.schedule.as<schedules::Join>();
    CHECK(join.schedules.at(1).schedule.as<schedules::WarmupCosineDecay>()->peak_value == either(0.2, 0.3));
    CHECK(member.optimizer.groups.front().learning_rate_scale == either(3, 4));
    CHECK(member.model.layers.at(1).kind.as<layers::Dropout>()->rate == either(0.3, 0.4));
    const auto& nested = *member.model.layers.at(2).kind.as<layers::Layers>();
    CHECK(nested.layers.front().kind.as<layers::Dropout>()->rate == either(0.5, 0.6));
    CHECK(member.loss.as<losses::SoftmaxCrossEntropy>()->label_smoothing == either(0.2, 0.3));
    CHECK(member.train.ema->decay == either(0.9, 0.99));
  }
  CHECK(spec.ensemble->vary.at(6).path == "model.layers.2.layers.0.dropout.rate");
}

TEST_CASE("--set adds keys to vary, in parts or quoted, replaces their values and removes the ensemble", "[spec]") {
  const std::string text = with_ensemble("{axis: replicas, vary: {seed: [3, 4]}}");
  spec::Overrides overrides;
  overrides.set = {"ensemble.vary.seed=[5, 6]", "ensemble.vary.optimizer.learning_rate=[0.1, 0.2]",
                   "ensemble.vary.\"optimizer.adam.b1\"=[0.8, 0.9]"};
  const spec::Spec spec = spec::load_text(text, "c.yaml", "/base", overrides).spec;
  CHECK(spec::member_spec(spec, 0).seed == 5);
  CHECK(spec::member_spec(spec, 1).optimizer.learning_rate.value == 0.2);
  CHECK(spec::member_spec(spec, 1).optimizer.rule.as<optimizers::Adam>()->b1 == 0.9);
  const std::string dotted =
      with_ensemble("{axis: replicas, vary: {optimizer.learning_rate: [0.1, 0.2], seed: [1, 2]}}");
  const spec::Ensemble replaced = *spec::load_text(dotted, "c.yaml", "/base", overrides).spec.ensemble;
  REQUIRE(replaced.vary.size() == 3);
  CHECK(replaced.vary.front().values == std::vector<std::string>{"0.1", "0.2"});
  overrides.set = {"ensemble.vary.optimizer.learning_rate=null"};
  CHECK(spec::load_text(dotted, "c.yaml", "/base", overrides).spec.ensemble->vary.size() == 1);
  overrides.set = {"ensemble.vary.data.seed=[5, 6]"};
  const std::string nested = with_ensemble("{axis: replicas, vary: {data: {seed: [3, 4]}}}");
  CHECK(spec::member_spec(spec::load_text(nested, "c.yaml", "/base", overrides).spec, 1).data.seed == 6u);
  overrides.set = {"ensemble=null"};
  CHECK_FALSE(spec::load_text(text, "c.yaml", "/base", overrides).spec.ensemble);
}

TEST_CASE("--set removes keys of vary, and those below them, and refuses to remove what is not there", "[spec]") {
  const std::string text = with_ensemble(
      "{axis: replicas, vary: {seed: [1, 2], optimizer.adam.b1: [0.8, 0.9], optimizer: {adam: {b2: [0.8, 0.9]}}}}");
  const auto left = [&](const std::string& set) {
    spec::Overrides overrides;
    overrides.set = {set};
    const spec::Spec spec = spec::load_text(text, "c.yaml", "/base", overrides).spec;
    std::vector<std::string> paths;
    for (const spec::Varied& key : spec.ensemble->vary) paths.push_back(key.path);
    return paths;
  };
  using Paths = std::vector<std::string>;
  CHECK(left("ensemble.vary.seed=null") == Paths{"optimizer.adam.b1", "optimizer.adam.b2"});
  CHECK(left("ensemble.vary.optimizer.adam.b1=null") == Paths{"seed", "optimizer.adam.b2"});
  CHECK(left("ensemble.vary.\"optimizer.adam.b2\"=null") == Paths{"seed", "optimizer.adam.b1"});
  CHECK(left("ensemble.vary.optimizer.adam=null") == Paths{"seed"});
  CHECK(left("ensemble.vary.optimizer=null") == Paths{"seed"});
}

TEST_CASE("--set sets an item of a list of vary", "[spec]") {
  const std::string text = with_ensemble("{axis: replicas, vary: {seed: [1, 2], optimizer: {adam: {b1: [0.7, 0.8]}}}}");
  spec::Overrides overrides;
  overrides.set = {"ensemble.vary.seed.0=9", "ensemble.vary.optimizer.adam.b1.1=0.9"};
  const spec::Spec spec = spec::load_text(text, "c.yaml", "/base", overrides).spec;
  CHECK(spec.ensemble->vary.front().values == std::vector<std::string>{"9", "2"});
  CHECK(spec.ensemble->vary.back().values == std::vector<std::string>{"0.7", "0.9"});
}

TEST_CASE("the scales of a schedule and the factor of a plateau vary; the boundaries do not", "[spec]") {
  const std::string text = with_ensemble(R"({axis: replicas, vary: {
  optimizer.learning_rate.piecewise_constant.boundaries_and_scales.1.1: [0.5, 0.25],
  optimizer.reduce_on_plateau.factor: [0.1, 0.2]}})");
  spec::Overrides overrides;
  overrides.set = {
      "optimizer={sgd: {}, reduce_on_plateau: {metric: loss}, learning_rate: {piecewise_constant: {init_value: 1, "
      "boundaries_and_scales: [[1 step, 0.1], [2 steps, 0.2]]}}}"};
  const spec::Spec spec = spec::load_text(text, "c.yaml", "/base", overrides).spec;
  for (const std::int64_t m : {0, 1}) {
    const optimizers::Options& optimizer = spec::member_spec(spec, m).optimizer;
    const auto& pieces = *optimizer.learning_rate.schedule.as<schedules::PiecewiseConstant>();
    CHECK(pieces.boundaries_and_scales.at(0).scale == 0.1);
    CHECK(pieces.boundaries_and_scales.at(1).scale == (m == 0 ? 0.5 : 0.25));
    CHECK(optimizer.reduce_on_plateau->factor == (m == 0 ? 0.1 : 0.2));
  }
  const std::string scales = "optimizer.learning_rate.piecewise_constant.boundaries_and_scales";
  const std::string wrong =
      errors_of(text, {overrides.set.front(), "ensemble.vary=null", "ensemble.vary." + scales + ".0.1=[0.1, fast]"});
  CHECK(wrong.starts_with("--set:1:90: error: scale takes a number of at least 0, not 'fast'\n"));
  CHECK(wrong.ends_with("\n  help: for example scale: 0.1\n"));
  for (const std::string& key : {scales, scales + ".0.0"}) {
    const std::string refused =
        errors_of(text, {overrides.set.front(), "ensemble.vary=null", "ensemble.vary." + key + "=[1, 2]"});
    CHECK(refused.find("'" + key + "' cannot vary between the members of an ensemble\n") != std::string::npos);
    CHECK(refused.find(", " + scales + ".0.1, " + scales + ".1.1, optimizer.reduce_on_plateau.factor\n") !=
          std::string::npos);
  }
}

TEST_CASE("a learning rate over a schedule is refused; the schedule's number is suggested", "[spec]") {
  const std::string ensemble = with_ensemble("{axis: replicas, vary: {optimizer.learning_rate: [0.1, 0.2]}}");
  CHECK(errors_of(ensemble).empty());
  CHECK(errors_of(ensemble, {"optimizer.learning_rate={piecewise_constant: {init_value: 1, "
                             "boundaries_and_scales: [[1 step, 0.1]]}}"})
            .ends_with("help: vary optimizer.learning_rate.piecewise_constant.init_value\n"));
}

TEST_CASE("a key that cannot vary is refused with those of the config that can", "[spec]") {
  CHECK(errors_of(with_ensemble("{axis: replicas, vary: {optimizer.sgd.momentum: [0.1, 0.2]}}"))
            .find("this config has no 'optimizer.sgd.momentum' to vary") != std::string::npos);
}
