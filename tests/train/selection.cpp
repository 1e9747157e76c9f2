// What evaluations decide, and spikes of the loss.
#include "core/run/selection.h"

#include <limits>

#include "core/run/loss_spike.h"
#include "tests/arrays.h"
#include "tests/catch.h"

using namespace pmaptrain;
using run::BestSoFar;
using run::EarlyStopping;
using run::LossSpike;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("The best evaluation is better than all before it", "[train]") {
  BestSoFar lowest{spec::Mode::min};
  CHECK_FALSE(lowest.observe(10, test::nan_value, 1.0));
  CHECK_FALSE(lowest.value.has_value());
  CHECK(lowest.observe(20, infinite, 1.0));
  CHECK(lowest.observe(30, 0.5, 1.0));
  CHECK_FALSE(lowest.observe(40, 0.5, 1.0));
  CHECK_FALSE(lowest.observe(50, test::nan_value, 0.1));
  CHECK_FALSE(lowest.observe(60, 0.6, 0.1));
  CHECK(lowest.step == 30);
  CHECK(lowest.value == 0.5);
  CHECK(lowest.observe(70, -1.0, 2.0));

  BestSoFar highest{spec::Mode::max};
  CHECK(highest.observe(1, -2.0, 1.0));
  CHECK_FALSE(highest.observe(2, -3.0, 1.0));
  CHECK_FALSE(highest.observe(3, test::nan_value, 1.0));
  CHECK(highest.observe(4, 0.0, 1.0));
  CHECK(highest.step == 4);
}

TEST_CASE("Of evaluations with equal values that with the lower loss is the best", "[train]") {
  BestSoFar accuracy{spec::Mode::max};
  CHECK(accuracy.observe(1, 0.9, 0.5));
  CHECK_FALSE(accuracy.observe(2, 0.9, 0.5));
  CHECK(accuracy.observe(3, 0.9, 0.4));
  CHECK_FALSE(accuracy.observe(4, 0.9, test::nan_value));
  CHECK_FALSE(accuracy.observe(5, 0.8, 0.1));
  CHECK(accuracy.step == 3);
  CHECK(accuracy.loss_there == 0.4);
  CHECK(accuracy.observe(6, 1.0, 3.0));  // a higher value, whatever the loss
  // A run of an older version has no loss of the best: it keeps its place.
  BestSoFar older{spec::Mode::max, 7, 0.9};
  CHECK_FALSE(older.observe(8, 0.9, 0.0));
  CHECK(older.observe(9, 0.91, 0.5));
  CHECK(older.observe(10, 0.91, 0.4));
}

TEST_CASE("Early stopping counts the evaluations since the last improvement", "[train]") {
  EarlyStopping stopping{spec::Mode::min, 2, 0.1, {}, 0};
  CHECK_FALSE(stopping.observe(1.0));
  CHECK_FALSE(stopping.observe(0.95));  // better, but not by more than 0.1
  CHECK_FALSE(stopping.observe(0.85));  // than 1.0, which is still the best
  CHECK(stopping.best == 0.85);
  CHECK(stopping.waited == 0);
  CHECK_FALSE(stopping.observe(0.9));
  CHECK(stopping.observe(0.85));

  SECTION("A NaN is no improvement, and counts only after the first number") {
    EarlyStopping diverged{spec::Mode::max, 2, 0.0, {}, 0};
    for (int i = 0; i < 5; ++i) CHECK_FALSE(diverged.observe(test::nan_value));
    CHECK_FALSE(diverged.observe(0.5));
    CHECK_FALSE(diverged.observe(test::nan_value));
    CHECK(diverged.observe(test::nan_value));
  }
  SECTION("A copy of its members goes on where it was") {
    EarlyStopping first{spec::Mode::max, 3, 0.0, {}, 0};
    first.observe(0.5);
    first.observe(0.4);
    EarlyStopping second{spec::Mode::max, 3, 0.0, first.best, first.waited};
    CHECK_FALSE(second.observe(0.5));
    CHECK(second.observe(0.5));
  }
}

TEST_CASE("A loss spike is judged against the median of a full window", "[train]") {
  LossSpike spike(3.0, 100);
  CHECK_FALSE(spike.observe({0, 1, 100.0}));      // nothing to compare with
  CHECK_FALSE(spike.observe({1, 50, 1.0}));       // the window (-99, 1] is not full
  CHECK_FALSE(spike.observe({50, 100, 1000.0}));  // nor is (-50, 50]
  CHECK_FALSE(spike.observe({100, 150, 150.0}));  // 3 x 100, the median of 100, 1 and 1000, is more
  // The window (50, 150] has 1000 and 150.
  CHECK_FALSE(spike.observe({150, 200, 1725.0}));
  CHECK(spike.means() == std::vector<run::LossMean>{{50, 100, 1000.0}, {100, 150, 150.0}, {150, 200, 1725.0}});
  const auto warning = spike.observe({200, 250, 2813.0});  // 3 x 937.5 = 2812.5
  REQUIRE(warning);
  CHECK(*warning ==
        "step 250: the mean loss of the last 50 steps is 2813, more than 3 times the median 937.5 of the 100 steps "
        "before (train.loss_spike)");
}

TEST_CASE("A loss spike leaves out means that are not finite", "[train]") {
  LossSpike spike(2.0, 10);
  CHECK_FALSE(spike.observe({0, 10, 1.0}));
  CHECK_FALSE(spike.observe({10, 20, test::nan_value}));
  CHECK_FALSE(spike.observe({20, 30, infinite}));
  CHECK(spike.means().size() == 1);
  CHECK_FALSE(spike.observe({30, 40, 100.0}));  // the window (20, 30] has no mean
  CHECK(spike.observe({40, 50, 201.0}));
}

TEST_CASE("A loss spike goes on from the means that were saved", "[train]") {
  const std::vector<run::LossMean> lines{{0, 1, 2.0},   {1, 10, 1.5},  {10, 20, 1.4}, {20, 30, 5.0},
                                         {30, 37, 1.3}, {37, 40, 9.0}, {40, 50, 3.0}, {50, 60, 11.0}};
  LossSpike whole(2.0, 20);
  std::vector<std::optional<std::string>> expected;
  for (const run::LossMean& line : lines) expected.push_back(whole.observe(line));
  CHECK(expected[3].has_value());
  CHECK(expected[5].has_value());
  for (std::size_t cut = 0; cut <= lines.size(); ++cut) {
    LossSpike before(2.0, 20);
    for (std::size_t i = 0; i < cut; ++i) before.observe(lines[i]);
    LossSpike after(2.0, 20, before.means());
    for (std::size_t i = cut; i < lines.size(); ++i) CHECK(after.observe(lines[i]) == expected[i]);
    CHECK(after.means() == whole.means());
  }
}
