// Keys that do not have the effect for which they are written are told before a run.
#include "core/setup/without_effect.h"

#include <algorithm>

#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// 3 steps an epoch. The config is named "", so a place is ":LINE:COLUMN".
setup::Setup setup_with(const std::string& rate, const std::string& train) {
  return setup_of_text(
      "data: {source: {values: {inputs: [[0.5], [1], [-1], [0.25], [2], [3], [4], [5]], "
      "targets: [[1], [2], [3], [5], [6], [7], [8], [9]]}}, batch_size: 2, validation: 0.25}\n"
      "mesh: {axes: {devices: 2}}\nmodel: {layers: [dense: 1]}\nloss: mean_squared_error\nmetrics: [r2]\n"
      "optimizer: {adam: {}, learning_rate: " +
      rate + "}\ntrain: {" + train + "}\n");
}

// What is told of schedules, without places.
std::vector<std::string> unreached(const std::string& rate, const std::string& duration = "2 epochs") {
  std::vector<std::string> found = setup::unreached_boundaries(setup_with(rate, "duration: " + duration));
  for (std::string& text : found) {
    const std::size_t open = text.find(" (");
    REQUIRE(open != std::string::npos);
    CHECK(test::contains(text.substr(open, text.find(')') - open), ":6:"));
    text.erase(open, text.find(')') + 1 - open);
  }
  return found;
}

}  // namespace

TEST_CASE("boundaries of schedules that a run does not reach are told with their places", "[setup]") {
  using Texts = std::vector<std::string>;
  const std::string pieces = "{piecewise_constant: {init_value: 0.1, boundaries_and_scales: ";
  CHECK(unreached(pieces + "[[30 epochs, 0.1]]}}") ==
        Texts{"boundaries_and_scales is at step 90, and the run ends after 6 steps: this boundary has no effect"});
  CHECK(unreached(pieces + "[[1 epoch, 0.1], [6 steps, 0.1], [7 steps, 0.1]]}}") ==
        Texts{"boundaries_and_scales is at step 6, and the run ends after 6 steps: this boundary has no effect",
              "boundaries_and_scales is at step 7, and the run ends after 6 steps: this boundary has no effect"});
  CHECK(unreached(pieces + "[[5 steps, 0.1]]}}").empty());
  CHECK(unreached("{warmup_cosine_decay: {peak_value: 0.1, warmup: 2 epochs, decay: 9 epochs}}") ==
        Texts{"warmup is at step 6, and the run ends after 6 steps: the rate does not reach peak_value"});
  CHECK(unreached("{warmup_cosine_decay: {peak_value: 0.1, warmup: 1 epoch}}").empty());
  CHECK(unreached("{join: {schedules: [0.1, 0.2, 0.3], boundaries: [1 epoch, 3 epochs]}}") ==
        Texts{"boundaries is at step 9, and the run ends after 6 steps: the schedule behind this boundary has no "
              "effect"});
  // Boundaries of a schedule in another one count from its start.
  CHECK(unreached("{join: {schedules: [0.1, " + pieces + "[[4 steps, 0.1]]}}], boundaries: [1 epoch]}}") ==
        Texts{"boundaries_and_scales is at step 7, and the run ends after 6 steps: this boundary has no effect"});
  CHECK(unreached("0.1").empty());
  const setup::Setup setup = setup_with(pieces + "[[30 epochs, 0.1]]}}", "duration: 1 epoch");
  CHECK(std::any_of(setup.warnings.begin(), setup.warnings.end(), [](const std::string& warning) {
    return test::contains(warning, "is at step 90, and the run ends after 3 steps");
  }));
}

TEST_CASE("early stopping without a best checkpoint is told with the key that keeps the best model", "[setup]") {
  const auto notes = [](const std::string& train) {
    std::vector<std::string> found = setup_with("0.1", "duration: 2 epochs" + train).source.notes;
    std::erase_if(found, [](const std::string& note) { return !test::contains(note, "early_stopping"); });
    return found;
  };
  const auto found = notes(", early_stopping: {metric: r2, patience: 1}");
  REQUIRE(found.size() == 1);
  CHECK(test::contains(found.front(), "train.early_stopping ("));
  CHECK(
      test::contains(found.front(),
                     ") stops the run some evaluations after the best one, and eval, predict and export take the last "
                     "model; train.checkpoint.best: {metric: r2} keeps the best one, and they take that"));
  CHECK(notes(", early_stopping: {patience: 1}, checkpoint: {best: {metric: loss}}").empty());
  CHECK(notes("").empty());
}
