// reduce_on_plateau against the sequences that optax.contrib.reduce_on_plateau gives for the same values.
#include "core/run/plateau.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "tests/arrays.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/session_run.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// The scale after each value.
std::vector<double> scales(const optimizers::ReduceOnPlateau& spec, const std::vector<double>& values) {
  std::vector<double> found;
  run::PlateauState state;
  for (const double value : values) {
    state = run::observe(spec, state, value);
    found.push_back(state.scale);
  }
  return found;
}

using Scales = std::vector<double>;

}  // namespace

TEST_CASE("the rate falls at the evaluation that completes the patience", "[train]") {
  CHECK(scales({"loss", {}, 0.5, 2, 0}, {3, 2, 2, 2, 1, 1, 1, 1, 1}) ==
        Scales{1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.125});
  CHECK(scales({"loss", {}, 0.5, 1, 0}, {3, 3, 2, 2}) == Scales{1, 0.5, 0.5, 0.25});
}

TEST_CASE("no evaluation of the cooldown counts", "[train]") {
  CHECK(scales({"loss", {}, 0.5, 2, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 1}) ==
        Scales{1, 1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25});
  // but an improvement during it is the new best.
  run::PlateauState state{1.0, 0, 2, 0.5};
  state = run::observe({"loss", {}, 0.5, 2, 3}, state, 0.5);
  CHECK(state == run::PlateauState{0.5, 0, 1, 0.5});
}

TEST_CASE("an improvement is larger than a ten thousandth of the best value", "[train]") {
  CHECK(scales({"loss", {}, 0.5, 1, 0}, {1.0, 0.99995}) == Scales{1, 0.5});
  CHECK(scales({"loss", {}, 0.5, 1, 0}, {1.0, 0.9998}) == Scales{1, 1});
  CHECK(scales({"accuracy", {}, 0.5, 1, 0}, {0.5, 0.50004}) == Scales{1, 0.5});
  CHECK(scales({"accuracy", {}, 0.5, 1, 0}, {0.5, 0.5001}) == Scales{1, 1});
}

TEST_CASE("the mode is the metric's own unless the config says it", "[train]") {
  const std::vector<double> rising{0.1, 0.2, 0.3};
  CHECK(scales({"accuracy", {}, 0.5, 1, 0}, rising) == Scales{1, 1, 1});
  CHECK(scales({"loss", {}, 0.5, 1, 0}, rising) == Scales{1, 0.5, 0.25});
  CHECK(scales({"accuracy", spec::Mode::min, 0.5, 1, 0}, rising) == Scales{1, 0.5, 0.25});
  CHECK(scales({"loss", spec::Mode::max, 0.5, 1, 0}, rising) == Scales{1, 1, 1});
}

TEST_CASE("what is not a number never improves, and counts only after the first number", "[train]") {
  CHECK(scales({"loss", {}, 0.5, 2, 0}, {test::nan_value, test::nan_value, 1.0, test::nan_value, test::nan_value,
                                         test::nan_value}) == Scales{1, 1, 1, 1, 0.5, 0.5});
  CHECK_FALSE(run::observe({}, {}, std::numeric_limits<double>::infinity()).best);
}

TEST_CASE("rtol and atol are those of optax.contrib.reduce_on_plateau", "[train]") {
  for (const auto& one : nlohmann::json::parse(test::read_text("tests/parity/plateaus.json"))) {
    const auto& options = one["options"];
    INFO(options.dump());
    optimizers::ReduceOnPlateau plateau;
    plateau.factor = options["factor"];
    plateau.patience = options["patience"];
    plateau.cooldown = options["cooldown"];
    plateau.rtol = options.value("rtol", plateau.rtol);
    plateau.atol = options.value("atol", plateau.atol);
    CHECK(scales(plateau, one["values"]) == one["scales"].get<std::vector<double>>());
  }
}

TEST_CASE("a metric that is NaN at every evaluation is told once, and selects, lowers and stops nothing", "[train]") {
  const test::TemporaryFolder folder;
  folder.write("train.csv", "x,y\n1,no\n2,yes\n3,no\n4,yes\n5,no\n6,yes\n");
  folder.write("one_class.csv", "x,y\n7,yes\n8,yes\n");
  const Trained run =
      train_setup(setup_of_text("data: {batch_size: 2, source: {csv: {train: " + (folder / "train.csv") +
                                ", validation: " + (folder / "one_class.csv") + ", target: y}}}" + R"(
mesh: {axes: {devices: 2}}
model: {layers: [dense: 2]}
loss: softmax_cross_entropy
metrics: [roc_auc]
optimizer: {sgd: {}, learning_rate: 0.1, reduce_on_plateau: {metric: roc_auc, patience: 1}}
train:
  duration: 12 steps
  eval_every: 3 steps
  checkpoint: {best: {metric: roc_auc}}
  early_stopping: {metric: roc_auc, patience: 1}
)"));
  std::vector<std::string> told;
  for (const run::Warned& warned : run.of<run::Warned>()) {
    if (test::contains(warned.text, "NaN")) told.push_back(warned.text);
  }
  REQUIRE(told.size() == 1);
  CHECK(told.front() ==
        "roc_auc has no value (NaN) on the validation split, as where a class has no example there: "
        "train.checkpoint.best, train.early_stopping and optimizer.reduce_on_plateau do nothing until it has one");
  CHECK(run.of<run::Noted>().empty());
  const auto ended = run.of<run::Ended>();
  REQUIRE(ended.size() == 1);
  CHECK(ended.front().steps == 12);
  CHECK_FALSE(ended.front().members.front().best);
}

TEST_CASE("a learning rate that falls on a plateau is told in a line of its own", "[train]") {
  const Trained run = train_setup(setup_of_text(
      small_images,
      {"train.duration=6 steps", "train.eval_every=1 step",
       "optimizer={sgd: {}, learning_rate: 1.0e-30, reduce_on_plateau: {metric: loss, patience: 2, factor: 0.5}}"}));
  const std::vector<run::Noted> notes = run.of<run::Noted>();
  REQUIRE(notes.size() == 2);
  CHECK(notes.front().text ==
        "step 3: loss did not improve in 2 evaluations: the learning rate is multiplied by 0.5 "
        "(optimizer.reduce_on_plateau)");
  CHECK(notes.back().text.starts_with("step 5: "));
  for (const run::Warned& warned : run.of<run::Warned>()) CHECK_FALSE(test::contains(warned.text, "multiplied"));
}
