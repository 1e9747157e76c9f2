// Metrics are told before a run that are misunderstood: by a mode that takes their worst values for the best, or of
// outputs that are no numbers.
#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// The warnings about modes with these keys in `train` and `optimizer`.
std::vector<std::string> warnings_with(const std::string& train, const std::string& optimizer = "") {
  std::vector<std::string> found =
      setup_of_text(
          "data: {source: {values: {inputs: [[0.5], [1], [-1], [0.25]], targets: [[1], [2], [3], [5]]}}, "
          "batch_size: 2, validation: 0.25}\nmesh: {axes: {devices: 2}}\nmodel: {layers: [dense: 1]}\n"
          "loss: mean_squared_error\nmetrics: [r2, mean_absolute_error]\noptimizer: {adam: {}, learning_rate: 0.1" +
          optimizer + "}\ntrain: {duration: 3 epochs" + train + "}\n")
          .warnings;
  std::erase_if(found, [](const std::string& warning) { return !test::contains(warning, " has mode: "); });
  return found;
}

}  // namespace

TEST_CASE("a mode against the direction of its metric is told wherever a metric decides", "[setup]") {
  const auto best = warnings_with(", checkpoint: {best: {metric: r2, mode: min}}");
  REQUIRE(best.size() == 1);
  CHECK(test::contains(best.front(), "train.checkpoint.best has mode: min ("));
  CHECK(test::contains(best.front(),
                       "), and larger values of r2 are better: the worst checkpoint is kept as the best; remove mode, "
                       "or write mode: max"));
  const auto stopping = warnings_with(", early_stopping: {mode: max}");
  REQUIRE(stopping.size() == 1);
  CHECK(test::contains(stopping.front(), "train.early_stopping has mode: max ("));
  CHECK(
      test::contains(stopping.front(), "), and smaller values of loss are better: a run that gets better is stopped"));
  const auto plateau = warnings_with("", ", reduce_on_plateau: {metric: mean_absolute_error, mode: max}");
  REQUIRE(plateau.size() == 1);
  CHECK(test::contains(plateau.front(), "optimizer.reduce_on_plateau has mode: max ("));
  CHECK(test::contains(plateau.front(), "the learning rate falls where a run gets better"));
  CHECK(warnings_with(", checkpoint: {best: {metric: r2, mode: max}}, early_stopping: {metric: loss, mode: min}",
                      ", reduce_on_plateau: {metric: r2}")
            .empty());
}

TEST_CASE("metrics of numbers are told where the outputs are logits", "[setup]") {
  const auto told = [](const std::string& layers, const std::string& metrics) {
    std::vector<std::string> found =
        setup_of_text(
            "data: {source: {values: {inputs: [[0.5], [1], [-1], [0.25]], targets: [[1], [0], [1], [0]]}}, "
            "batch_size: 2}\nmesh: {axes: {devices: 2}}\nmodel: {layers: [" +
            layers + "]}\nloss: sigmoid_cross_entropy\nmetrics: [" + metrics +
            "]\noptimizer: {adam: {}, learning_rate: 0.1}\ntrain: {duration: 3 epochs}\n")
            .warnings;
    std::erase_if(found, [](const std::string& warning) { return !test::contains(warning, " logits with "); });
    return found;
  };
  const auto found = told("dense: 1", "mean_absolute_error, r2");
  REQUIRE(found.size() == 2);
  CHECK(found[0].starts_with("metric mean_absolute_error ("));
  CHECK(found[0].ends_with(
      ") compares the targets with the outputs, which are logits with sigmoid_cross_entropy, no probabilities: it says "
      "little; accuracy and f1 are for labels of 0 and 1"));
  CHECK(found[1].starts_with("metric r2 ("));
  CHECK(told("dense: 1, sigmoid", "mean_absolute_error").empty());
  CHECK(told("dense: 1", "").empty());
}
