// What a person sees while a sweep goes on.
#include "app/display/sweep_table.h"

#include <fmt/format.h>

#include <deque>
#include <string>

#include "app/display/sweep_display.h"
#include "core/base/text.h"
#include "core/base/wrap.h"
#include "tests/catch.h"
#include "tests/display/screen.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::display;
using test::Collector;
using test::contains;
using test::Screen;

namespace {

spec::SweepSpec two_parameters() {
  spec::SweepSpec sweep;
  sweep.metric = "accuracy";
  sweep.mode = spec::Mode::max;
  sweep.parameters = {{"optimizer.learning_rate", spec::Space::log_uniform, {}, 1e-4, 1e-1},
                      {"model.layers.1.dense", spec::Space::choice, {"32", "64"}, 0, 0}};
  return sweep;
}

// A sweep of eight runs; three runs are done.
struct Running {
  std::deque<sweep::Row> rows;
  sweep::Progress progress;

  explicit Running(std::int64_t running) {
    for (std::int64_t i = 0; i < running; ++i) {
      sweep::Row& row = rows.emplace_back();
      row.number = 4 + i;
      row.status = sweep::Status::running;
      row.parameters = fmt::format("{{\"optimizer.learning_rate\": {}, \"model.layers.1.dense\": {}}}",
                                   0.0143216 * static_cast<double>(i + 1), i % 2 == 0 ? 32 : 64);
      sweep::RunningTrial trial;
      trial.row = &row;
      trial.step = 100 + i;
      trial.steps = 180;
      trial.epoch = 3;
      trial.loss = 0.4321 + static_cast<double>(i);
      if (i != 1) trial.value = 0.8512;
      progress.trials.push_back(trial);
    }
    progress.running = running;
    progress.waiting = 3;
    progress.done = 3;
    progress.best = sweep::Score{3, 0.93125, {}};
    progress.seconds_left = 80;
  }
};

}  // namespace

TEST_CASE("a table of a sweep has its counts, the best, the time left and a line for each run that goes on",
          "[display]") {
  const Running sweep(2);
  CHECK(sweep_table(sweep.progress, two_parameters(), {97, 22, false}) ==
        "3 of 8 runs done, best accuracy 0.93125 (trial 3), 1:20 left, 2 running, 3 waiting\n"
        "trial  accuracy  done  learning_rate  dense  training loss  epoch     step\n"
        " 0004   0.85120   55%        0.01432     32        0.43210      3  100/180\n"
        " 0005         -   56%        0.02864     64         1.4321      3  101/180");
  CHECK(sweep_table(sweep.progress, two_parameters(), {97, 22, true}) ==
        "3 of 8 runs done, best accuracy 0.93125 (trial 3), 1:20 left, 2 running, 3 waiting\n"
        "\x1b[2mtrial  accuracy  done  learning_rate  dense  training loss  epoch     step\x1b[0m\n"
        " 0004   0.85120   55%        0.01432     32        0.43210      3  100/180\n"
        " 0005         -   56%        0.02864     64         1.4321      3  101/180");
}

TEST_CASE("in a narrow terminal the table of a sweep is folded and cut, and never grows too long", "[display]") {
  Running sweep(2);
  CHECK(sweep_table(sweep.progress, two_parameters(), {58, 22, false}) ==
        "3 of 8 runs done, best accuracy 0.93125 (trial 3),\n"
        "1:20 left, 2 running, 3 waiting\n"
        "trial  accuracy  done  learning_rate  dense  training loss\n"
        " 0004   0.85120   55%        0.01432     32        0.43210\n"
        " 0005         -   56%        0.02864     64         1.4321");
  CHECK(sweep_table(sweep.progress, two_parameters(), {27, 22, false}) ==
        "3 of 8 runs done,\n"
        "best 0.93125 (trial 3),\n"
        "1:20 left, 2 running,\n"
        "3 waiting\n"
        "trial accuracy done learni\n"
        " 0004  0.85120  55%  0.014\n"
        " 0005        -  56%  0.029");
  sweep.progress.failed = 1;
  for (int width = 4; width < 120; ++width) {
    for (int height = 1; height < 12; ++height) {
      const std::string table = sweep_table(sweep.progress, two_parameters(), {width, height, true});
      const Screen screen(table, width + 1);
      INFO(table);
      CHECK(static_cast<int>(screen.rows.size()) <= height);
      for (const std::string& row : screen.rows) CHECK(display_width(row) <= width);
    }
  }
}

TEST_CASE("a low terminal has as many runs as fit, and the number of the others", "[display]") {
  const Running sweep(9);
  CHECK(sweep_table(sweep.progress, two_parameters(), {70, 6, false}) ==
        "3 of 15 runs done, best accuracy 0.93125 (trial 3), 1:20 left\n"
        "trial  accuracy  done  learning_rate  dense  training loss  epoch\n"
        " 0004   0.85120   55%        0.01432     32        0.43210      3\n"
        " 0005         -   56%        0.02864     64         1.4321      3\n"
        " 0006   0.85120   56%        0.04296     32         2.4321      3\n"
        "and 6 more");
  CHECK(sweep_table(sweep.progress, two_parameters(), {70, 2, false}) ==
        "3 of 15 runs done, best accuracy 0.93125 (trial 3), 1:20 left");
}

TEST_CASE("the names of parameters are short, and differ", "[display]") {
  Running sweep(1);
  spec::SweepSpec spec = two_parameters();
  spec.parameters[0].name = "model.layers.3.dense";
  sweep.rows[0].parameters = R"({"model.layers.3.dense": 16, "model.layers.1.dense": "a value that is very long"})";
  sweep.progress.trials[0].epoch = 0;
  sweep.progress.trials[0].loss.reset();
  CHECK(sweep_table(sweep.progress, spec, {80, 22, false}) ==
        "3 of 7 runs done, best accuracy 0.93125 (trial 3), 1:20 left, 1 running,\n"
        "3 waiting\n"
        "trial  accuracy  done  3.dense               1.dense     step\n"
        " 0004   0.85120   55%       16  a value that is very  100/180");
  CHECK(sweep_table(sweep::Progress(), spec, {80, 22, false}).empty());
}

TEST_CASE("the table of a sweep stays below the lines, follows the terminal's size, and is taken away", "[display]") {
  for (const int columns : {30, 80, 120}) {
    Collector output(columns, 24);
    std::size_t size = 0;
    std::string last;
    {
      Terminal terminal{output.fd(), true, false, false, [&] { return columns_of(output.fd()); }, {}};
      terminal.height = [&] { return lines_of(output.fd()); };
      SweepDisplay shown({}, two_parameters(), terminal);
      for (const std::int64_t running : {8, 3, 0, 5}) {
        Running sweep(running);
        shown.show(sweep.progress);
        size = output.wait_beyond(size);
        sweep::Row ended = Running(1).rows[0];
        ended.status = sweep::Status::done;
        ended.value = 0.5;
        ended.steps = 180;
        sweep.progress.ended = &ended;
        shown.show(sweep.progress);
        size = output.wait_beyond(size);
      }
    }
    const Screen screen(output.finish(), 1000);
    const std::string line =
        "trial 0004: accuracy 0.5, optimizer.learning_rate=0.01432, model.layers.1.dense=32, 180 steps, 0.0 s";
    const std::string shown = wrapped(line, columns - 1);
    CHECK(join(screen.rows, "\n") == join({shown, shown, shown, shown, ""}, "\n"));
  }
}

TEST_CASE("a table that a narrower terminal has folded is taken away as a whole", "[display]") {
  Collector output(80, 24);
  {
    Terminal terminal{output.fd(), true, false, false, [&] { return columns_of(output.fd()); }, {}};
    SweepDisplay shown({}, two_parameters(), terminal);
    const Running sweep(2);
    shown.show(sweep.progress);
    const std::size_t size = output.wait_beyond(0);
    output.resize(40);
    shown.show(sweep.progress);
    output.wait_beyond(size);
  }
  // Four lines, of 72, 9, 74 columns (and twice as many) are folded into two rows each but for the second.
  const std::string& text = output.finish();
  CHECK(contains(text, "\r\x1b[8A"));
}

TEST_CASE("a sweep in a pipe has a line for each run that has ended, and no table", "[display]") {
  Collector output;
  {
    SweepDisplay shown({}, two_parameters(), Terminal{output.fd(), false, false, false, {}, {}});
    Running sweep(2);
    shown.show(sweep.progress);
    sweep.progress.ended = &sweep.rows[0];
    sweep.rows[0].status = sweep::Status::stopped;
    shown.show(sweep.progress);
    sweep.progress.ended = nullptr;
    sweep.progress.note = "rung 1: 2 of 4 trials go on";
    shown.show(sweep.progress);
  }
  CHECK(output.finish() ==
        "trial 0004: stopped with a checkpoint, optimizer.learning_rate=0.01432, model.layers.1.dense=32, 0 steps, "
        "0.0 s\nrung 1: 2 of 4 trials go on\n");
}
