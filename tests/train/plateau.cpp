// reduce_on_plateau against the sequences that optax.contrib.reduce_on_plateau gives for the same values.
#include "core/run/plateau.h"

#include <limits>

#include "tests/arrays.h"
#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// The scale after each value.
std::vector<double> scales(const spec::ReduceOnPlateau& spec, const std::vector<double>& values) {
  std::vector<double> found;
  train::PlateauState state;
  for (const double value : values) {
    state = train::observe(spec, state, value);
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
  train::PlateauState state{1.0, 0, 2, 0.5};
  state = train::observe({"loss", {}, 0.5, 2, 3}, state, 0.5);
  CHECK(state == train::PlateauState{0.5, 0, 1, 0.5});
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

TEST_CASE("what is not a number never improves", "[train]") {
  CHECK(scales({"loss", {}, 0.5, 2, 0}, {test::nan_value, test::nan_value, 1.0, test::nan_value, test::nan_value}) ==
        Scales{1, 0.5, 0.5, 0.5, 0.25});
  CHECK_FALSE(train::observe({}, {}, std::numeric_limits<double>::infinity()).best);
}

TEST_CASE("a learning rate that falls on a plateau is told in a line of its own", "[train]") {
  const Trained run = train_setup(setup_of_text(
      small_images,
      {"train.duration=6 steps", "train.eval_every=1 step",
       "optimizer={sgd: {}, learning_rate: 1.0e-30, reduce_on_plateau: {metric: loss, patience: 2, factor: 0.5}}"}));
  const std::vector<train::Noted> notes = run.of<train::Noted>();
  REQUIRE(notes.size() == 2);
  CHECK(notes.front().text ==
        "step 3: loss did not improve in 2 evaluations: the learning rate is multiplied by 0.5 "
        "(optimizer.reduce_on_plateau)");
  CHECK(notes.back().text.starts_with("step 5: "));
  for (const train::Warned& warned : run.of<train::Warned>()) CHECK_FALSE(test::contains(warned.text, "multiplied"));
}
