// Modes that take the worst values of a metric for the best are told before a run.
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
