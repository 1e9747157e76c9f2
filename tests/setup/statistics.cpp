// Models with batch_norm from a config on: what is said of their statistics, and where these are kept.
#include <algorithm>

#include "core/evaluate/evaluator.h"
#include "core/report/plan_report.h"
#include "core/setup/statistics_advice.h"
#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

const std::string normalised_layers =
    "model.layers=[{conv: {features: 3, kernel_size: [3, 3], use_bias: false}}, {batch_norm: {momentum: 0.5}}, relu, "
    "global_avg_pool, {dense: 3}]";

std::vector<std::string> normalised(std::vector<std::string> more = {}) {
  more.insert(more.begin(), normalised_layers);
  return more;
}

std::vector<std::string> warnings_of(const std::vector<std::string>& set) {
  std::vector<std::string> found;
  for (const std::string& warning : setup_of_text(small_images, set).warnings) {
    if (warning.find("batch_norm") != std::string::npos) found.push_back(warning);
  }
  return found;
}

}  // namespace

TEST_CASE("the values behind a statistic are rows times positions, over the axes that it names", "[setup]") {
  const auto counts = [](const std::vector<std::string>& set) {
    std::vector<std::int64_t> found;
    for (const setup::ValuesBehind& values : setup::values_behind_statistics(setup_of_text(small_images, set))) {
      found.insert(found.end(), {values.rows, values.positions, values.count()});
    }
    return found;
  };
  CHECK(counts(normalised()) == std::vector<std::int64_t>{4, 36, 144});
  CHECK(counts(normalised({"data.microbatches=2"})) == std::vector<std::int64_t>{2, 36, 72});
  CHECK(counts({"model.layers=[flatten, {dense: 4}, {batch_norm: {axes: [devices]}}, {dense: 4}, {batch_norm: {axes: "
                "[devices]}}, {dense: 3}]"}) == std::vector<std::int64_t>{16, 1, 16});
  CHECK(counts({}).empty());
}

TEST_CASE("a statistic of one value is refused, and few values and doubtful momenta are warned of", "[setup]") {
  const std::string flat = "model.layers=[flatten, {dense: 4}, batch_norm, {dense: 3}]";
  CHECK(
      test::refusal(
          [&] {
            setup_of_text(small_images, {flat, "data.batch_size=4"});
          },
          ExitStatus::usage) ==
      "batch_norm_0 has statistics of one value, 1 value (1 row x 1 position): its variance is 0, and the layer gives "
      "its bias for any input | use a larger batch or fewer microbatches, name mesh axes in axes, or use layer_norm, "
      "which normalises each example");
  // Of one example the padding of a full batch leaves one row.
  CHECK_THROWS_WITH(setup_of_text(small_images, {flat, "data.limit.train=1 example", "data.remainder=mask"}),
                    Catch::Contains("batch_norm_0 has statistics of one value, 1 value (1 row x 1 position)"));
  CHECK(warnings_of(normalised()).empty());
  CHECK(
      warnings_of({"model.layers=[flatten, {dense: 4}, {batch_norm: {momentum: 0.5}}, {dense: 3}]"}) ==
      std::vector<std::string>{
          "batch_norm_0 (--set:1:37) has statistics of 4 values (4 rows x 1 position), which differ much from batch to "
          "batch: a larger batch, or mesh axes in axes, has more"});
  const auto with_momentum = [](const std::string& momentum) {
    return warnings_of({"model.layers=[{conv: {features: 3, kernel_size: [3, 3]}}, {batch_norm: {momentum: " +
                        momentum + "}}, flatten, {dense: 3}]"});
  };
  REQUIRE(with_momentum("0.1").size() == 1);
  CHECK(with_momentum("0.1").front().find("has the momentum 0.1, the share of the running statistics that a step "
                                          "keeps: PyTorch's 0.1 is 0.9 here") != std::string::npos);
  REQUIRE(with_momentum("0.99").size() == 1);
  CHECK(with_momentum("0.99").front().find("before an evaluation: its running statistics are then mostly the initial "
                                           "ones; a smaller momentum moves them faster") != std::string::npos);
}

TEST_CASE("running statistics of a trained model are not called initial ones, and those that begin anew are",
          "[setup]") {
  const TemporaryFolder root;
  const std::string run = root / "run";
  train_setup_in(run, setup_of_text(small_images, normalised()));
  const auto warnings = [&](const std::string& from) {
    return warnings_of(
        {"model.layers=[{conv: {features: 3, kernel_size: [3, 3], use_bias: false}}, batch_norm, relu, "
         "global_avg_pool, {dense: 3}]",
         "model.init={from: " + from + "}"});
  };
  CHECK(warnings(run).empty());
  const std::vector<std::string> anew = warnings("{path: " + run + ", exclude: [batch_norm_0.*]}");
  REQUIRE(anew.size() == 1);
  CHECK(test::contains(anew.front(), "its running statistics are then mostly the initial ones"));
}

TEST_CASE("running statistics are in checkpoints, which evaluate and continue with the run's bits", "[setup]") {
  const TemporaryFolder root;
  const std::string ema = GENERATE("train.ema=null", "train.ema={decay: 0.5}");
  const setup::Setup setup = setup_of_text(small_images, normalised({ema}));
  const Trained trained = train_setup_in(root / "run", setup);
  CHECK(trained.parameters.contains("batch_norm_0.scale"));
  REQUIRE(trained.parameters.contains("batch_norm_0.mean"));
  const std::vector<double> mean = to_doubles(trained.parameters.at("batch_norm_0.mean"));
  const std::vector<double> var = to_doubles(trained.parameters.at("batch_norm_0.var"));
  CHECK(mean != std::vector<double>(3, 0.0));
  CHECK(var != std::vector<double>(3, 1.0));
  const evaluate::Evaluation evaluation =
      evaluate::evaluate_checkpoint(setup.loaded, root / "run", "last", "test").front();
  CHECK(evaluation.measures == trained.result().final_measures.back().second);
  if (ema == "train.ema=null") return;
  const run::Tensors averages = run::read_safetensors(root / "run/checkpoints/step-00000004/ema.safetensors");
  CHECK(to_doubles(averages.at("batch_norm_0.mean")) == mean);
  CHECK(to_doubles(averages.at("batch_norm_0.scale")) != to_doubles(trained.parameters.at("batch_norm_0.scale")));
}

TEST_CASE("models with batch_norm train alike on any workers, and as on the reference backend", "[setup]") {
  const std::string more = GENERATE("data.microbatches=1", "data.microbatches=2", "data.remainder=mask",
                                    "precision=mixed_bfloat16", "data.batch_size=20");
  const std::string axes = GENERATE("[]", "[devices]");
  INFO(more << " over " << axes);
  const std::vector<std::string> set{
      "model.layers=[{conv: {features: 3, kernel_size: [3, 3], use_bias: false}}, {batch_norm: {momentum: 0.5, axes: " +
          axes +
          "}}, relu, {residual: {layers: [{conv: {features: 3, kernel_size: [3, 3], use_bias: false}}, {batch_norm: "
          "{momentum: 0.5, axes: " +
          axes + "}}]}}, flatten, {dense: 3}]",
      more};
  const auto trained = [&](const std::string& mesh) {
    std::vector<std::string> all = set;
    all.push_back(mesh);
    setup::Setup setup = setup_of_text(small_images, all);
    setup.warnings.clear();
    return train_setup(setup);
  };
  const Trained one = trained("mesh.workers=1");
  CHECK(trained("mesh.workers=3").same_bits(one));
  const bool mixed = more.starts_with("precision");
  check_same_training(one, trained("mesh.backend=reference"), mixed ? Tolerance{5e-2, 5e-2} : Tolerance{1e-4, 1e-3});
}
