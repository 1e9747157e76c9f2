// What the bar says of a run as its events come.
#include "app/display/progress.h"

#include <cmath>
#include <vector>

#include "core/base/text.h"
#include "tests/catch.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::display;
using run::Ended;
using run::Evaluated;
using run::Event;
using run::Logged;
using run::Progressed;
using run::Started;
using run::Working;
using test::contains;

namespace {

const BarState half_way{1170, 2340, 3, 5, {{"loss", 0.4321}, {"accuracy", 0.85}}, {}, 12345, 42, -1};

}  // namespace

TEST_CASE("where there is room, the bar has evaluations, the speed of steps, and the times of epoch and run",
          "[display]") {
  BarState state = half_way;
  state.evaluation = BarState::Evaluation{"validation loss", 0.3210, 0.3001};
  state.steps_per_second = 61.23;
  state.elapsed = 83;
  state.epoch_elapsed = 5;
  state.epoch_left = 10;
  CHECK(
      bar_line(state, {214, false, false}) ==
      "epoch 3/5 (0:05, 0:10 left)  [===============>              ]  50%  1170/2340  loss 0.43210  accuracy 0.85000  "
      "validation loss 0.32100 (best 0.30010)  61.2 steps/s  12,345 examples/s  1:23 elapsed  0:42 left");
  CHECK(bar_line(state, {103, false, false}) ==
        "epoch 3/5  [====>    ]  50%  1170/2340  loss 0.43210  validation loss 0.32100 (best 0.30010)  0:42 left");
  CHECK(bar_line(state, {60, false, false}) == bar_line(half_way, {60, false, false}));
  for (int width = 4; width < 220; ++width) {
    if (display_width(bar_line(state, {width, false, true})) > width) FAIL(bar_line(state, {width, false, true}));
  }
}

TEST_CASE("work that is no step has a bar of its own", "[display]") {
  const WorkState evaluating{"evaluating validation", 12, 40, 3};
  CHECK(work_line(evaluating, {80, false, false}) ==
        "evaluating validation  [=========>                    ]  30%  12/40  0:03 left");
  CHECK(work_line(evaluating, {40, false, false}) == "evaluating validation  [===>      ]  30%");
  CHECK(work_line(evaluating, {24, false, false}) == "evaluating validation");
  CHECK(work_line(evaluating, {8, false, false}) == "evaluati");
  CHECK(work_line({"opening the data", 0, 0, -1}, {80, false, false}) == "opening the data");
}

TEST_CASE("the loss of the bar is a moving mean, which a NaN begins anew", "[display]") {
  MovingMean mean;
  CHECK(!mean.value());
  mean.add(3);
  CHECK(mean.value() == Approx(3));
  mean.add(3);
  CHECK(mean.value() == Approx(3));
  mean.add(13);
  CHECK(mean.value().value() > 5);
  CHECK(mean.value().value() < 8);
  mean.add(std::nan(""));
  CHECK(std::isnan(*mean.value()));
  mean.add(1);
  CHECK(mean.value() == Approx(1));
}

TEST_CASE("the bar follows a run between its log lines", "[display]") {
  const BarStyle wide{250, false, false};
  RunProgress progress;
  double now = 100;
  const auto take = [&](const Event& event, double seconds) { progress.take(event, now += seconds); };
  take(Working{"opening the data"}, 0);
  CHECK(progress.line(wide) == "opening the data");
  Started begun{"cnn", "", 0, 2340, 468, {}};
  begun.best_metric = "accuracy";
  begun.largest_is_best = true;
  take(begun, 0);
  CHECK(progress.line(wide) == "the first step");
  take(Progressed{1, 1}, 1);
  take(Progressed{2, 1, {{"loss", 2.5}, {"accuracy", 0.25}}}, 0.5);
  CHECK(contains(progress.line(wide), "   2/2340  loss  2.5000  accuracy 0.25000"));
  for (std::int64_t step = 3; step <= 4; ++step) take(Progressed{step, 1}, 0.5);
  CHECK(contains(progress.line(wide), "2 steps/s"));
  CHECK(contains(progress.line(wide), "0:03 elapsed  19:28 left"));         // half a second for each of 2336
  CHECK(contains(progress.line(wide), "epoch 1/5 (0:03, 3:52 left)  [>"));  // and of 464
  take(Working{"evaluating validation", 0, 10}, 0);
  take(Working{"evaluating validation", 5, 10}, 4);
  CHECK(contains(progress.line(wide), "evaluating validation  ["));
  CHECK(contains(progress.line(wide), "50%  5/10  0:04 left"));
  const auto evaluated = [&](const char* split, double accuracy) {
    take(std::vector<Evaluated>{{4, 1, split, {{"loss", 0.5}, {"accuracy", accuracy}}, 10, 1}}, 1);
  };
  evaluated("validation", 0.75);
  evaluated("validation", 0.5);
  evaluated("test", 0.25);  // does not decide
  CHECK(contains(progress.line(wide), "validation accuracy 0.50000 (best 0.75000)"));
  take(std::vector<Logged>{{5, 1, {{"loss", 0.4321}, {"accuracy", 0.85}}, 0.001, 1.234, 12345, 1.0}}, 0);
  // A line of one batch does not move what is a mean of many; the next reading does, of all measures alike.
  CHECK(contains(progress.line(wide), "loss  2.5000  accuracy 0.25000"));
  take(Progressed{6, 1, {{"loss", 1.5}, {"accuracy", 0.75}}}, 0);
  CHECK(contains(progress.line(wide), "loss  1.9737  accuracy 0.51316"));
  take(Progressed{469, 2}, 300);
  CHECK(contains(progress.line(wide), "epoch 2/5 (0:00, "));
  Ended ended;
  ended.steps = 469;
  take(ended, 1);
  CHECK(!progress.is_running());
  CHECK(contains(progress.line(wide), " 469/2340"));
  CHECK(!contains(progress.line(wide), "left"));
}

TEST_CASE("examples per second of an old log line leave the bar", "[display]") {
  RunProgress progress;
  const BarStyle style{160, false, false};
  Started begin;
  begin.steps = 1000;
  progress.take(Event(begin), 0);
  progress.take(Event(std::vector<Logged>{{1, 1, {{"loss", 2.0}, {"accuracy", 0.1}}, 0.1, 1, 4321, 1}}), 1);
  progress.take(Event(Progressed{10, 1, {{"loss", 1.5}, {"accuracy", 0.2}}}), 2);
  CHECK(contains(progress.line(style), "accuracy 0.2000"));
  CHECK(contains(progress.line(style), "4,321 examples/s"));
  progress.take(Event(Progressed{500, 1, {{"loss", 0.5}, {"accuracy", 0.2}}}), 12);
  CHECK(contains(progress.line(style), "accuracy 0.2000"));
  CHECK_FALSE(contains(progress.line(style), "examples/s"));
}
