// What a person sees: on terminals of several widths, in pipes, and when nobody listens any more.
#include "app/display/display.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "app/display/bar.h"
#include "app/display/line_printer.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "tests/catch.h"
#include "tests/display/screen.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::display;
using run::Ended;
using run::Event;
using run::Logged;
using run::Progressed;
using run::Started;
using run::Warned;
using test::Collector;
using test::contains;
using test::Screen;

namespace {

Started started() { return {"cnn", "", 0, 2340, 468, {}}; }
Event logged(std::int64_t step) {
  return std::vector<Logged>{
      {step, (step - 1) / 468 + 1, {{"loss", 0.4321}, {"accuracy", 0.85}}, 0.001, 1.234, 12345, 1.0}};
}
Ended ended(std::int64_t steps) {
  Ended event;
  event.status = "done";
  event.steps = steps;
  event.seconds = 83;
  return event;
}

Terminal terminal_on(int fd, bool moving, double& clock) {
  return {fd, moving, false, false, [fd] { return columns_of(fd); }, [&clock] { return clock; }};
}

const BarState half{1170, 2340, 3, 5, {{"loss", 0.4321}, {"accuracy", 0.85}}, {}, 12345, 42, -1};

// Sets a variable of the environment until the end of its scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* const old = std::getenv(name)) old_ = old, had_ = true;
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
  }
  ~Variable() { had_ ? ::setenv(name_, old_.c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::string old_;
  bool had_ = false;
};

}  // namespace

TEST_CASE("the bar says epoch, share, step, measures, speed and time left", "[display]") {
  CHECK(
      bar_line(half, {122, false, false}) ==
      "epoch 3/5  [===============>              ]  50%  1170/2340  loss 0.43210  accuracy 0.85000  12,345 examples/s  "
      "0:42 left");
  BarState done = half;
  done.step = 2340;
  done.seconds = 83;
  CHECK(bar_line(done, {61, false, true}) == "epoch 3/5  ━━━━━━━━━━━━━━ 100%  2340/2340  loss 0.43210  1:23");
}

TEST_CASE("in a narrow terminal the bar drops parts and never grows too long", "[display]") {
  CHECK(bar_line(half, {61, false, false}) == "epoch 3/5  [===>   ]  50%  1170/2340  loss 0.43210  0:42 left");
  CHECK(bar_line(half, {30, false, false}) == "[====>    ]  50%  loss 0.43210");
  CHECK(bar_line(half, {19, false, false}) == "[======>     ]  50%");
  CHECK(bar_line(half, {4, false, false}) == " 50%");
  for (const bool utf8 : {false, true}) {
    for (const bool color : {false, true}) {
      for (int width = 4; width < 160; ++width) {
        for (std::int64_t step = 0; step <= 2340; step += 117) {
          BarState state = half;
          state.step = step;
          const std::string line = bar_line(state, {width, color, utf8});
          const Screen screen(line, width + 1);
          if (display_width(screen.rows[0]) > width) FAIL(line);
        }
      }
    }
  }
}

TEST_CASE("the time left stays where the bar can be shorter for it", "[display]") {
  BarState state = half;
  state.epoch = 0;
  for (const double loss : {0.4321, 0.0039869}) {
    state.measures = {{"loss", loss}};
    const std::string line = bar_line(state, {37, false, false});
    CHECK(contains(line, "0:42 left"));
    CHECK(display_width(line) == 37);
  }
  CHECK(bar_line(state, {37, false, false}) == "[=> ]  50%  loss 0.0039869  0:42 left");
  CHECK(bar_line(state, {35, false, false}) == "[>]  50%  loss 0.0039869  0:42 left");
  CHECK(bar_line(state, {34, false, false}) == "[=====>     ]  50%  loss 0.0039869");
}

TEST_CASE("in a terminal notes and warnings are broken between words, in a pipe they are not", "[display]") {
  const std::string warning = "the last layer, dense_1 (net.yaml:7:5), is a softmax, and the loss applies one itself";
  for (const bool moving : {true, false}) {
    for (const int columns : {40, 60, 0}) {
      INFO(moving << ' ' << columns);
      Collector output(columns);
      double clock = 100;
      {
        DisplayOptions options;
        options.progress = moving ? Progress::bar : Progress::plain;
        const auto shown = make_display(options, terminal_on(output.fd(), moving && columns > 0, clock));
        shown->on(started());
        shown->on(Warned{warning});
        shown->on(ended(468));
      }
      const std::string text = output.finish();
      if (columns == 0) {
        CHECK(contains(text, "warning: " + warning + "\n"));
        continue;
      }
      const Screen screen(text, columns);
      CHECK_FALSE(screen.wrapped);
      std::string together;
      for (const std::string& row : screen.rows) together += row.starts_with("  ") ? row.substr(1) : row;
      CHECK(contains(together, "warning: " + warning));
    }
  }
}

TEST_CASE(
    "of several members the bar has the median loss with the best and the worst, who they are where there is room",
    "[display]") {
  BarState members = half;
  members.loss = run::Spread{0.1234, 0.4321, 1.5, 3, 63};
  CHECK(bar_line(members, {134, false, false}) ==
        "epoch 3/5  [==>  ]  50%  1170/2340  loss 0.43210  best 0.12340 (3)  worst  1.5000 (63)  accuracy 0.85000  "
        "12,345 examples/s  0:42 left");
  CHECK(bar_line(members, {87, false, false}) ==
        "[===>  ]  50%  1170/2340  loss 0.43210  best 0.12340 (3)  worst  1.5000 (63)  0:42 left");
  CHECK(bar_line(members, {82, false, false}) ==
        "epoch 3/5  [====>   ]  50%  1170/2340  loss 0.43210 (0.12340 to 1.5000)  0:42 left");
  CHECK(bar_line(members, {62, false, false}) == "[=========>         ]  50%  1170/2340  loss 0.43210  0:42 left");
  CHECK(bar_line(members, {40, false, false}) == bar_line(half, {40, false, false}));
}

TEST_CASE("in a narrow terminal the lines of an ensemble keep the median loss, the best and the worst", "[display]") {
  for (const std::int64_t members : {8, 64}) {
    Collector output(60);
    double clock = 100;
    {
      const auto shown = make_display({}, terminal_on(output.fd(), true, clock));
      Started begin = started();
      begin.members = members;
      shown->on(begin);
      std::vector<Logged> lines;
      std::vector<run::Evaluated> evaluated;
      for (std::int64_t m = 0; m < members; ++m) {
        lines.push_back(std::get<std::vector<Logged>>(logged(468)).front());
        lines.back().member = m;
        lines.back().measures[0].second += 0.01 * static_cast<double>(m);
        evaluated.push_back({468, 1, "test", lines.back().measures, 1000, 2.5, m});
      }
      shown->on(Progressed{468, 1});
      shown->on(lines);
      shown->on(evaluated);
      shown->on(ended(468));
    }
    const Screen screen(output.finish(), 60);
    CHECK_FALSE(screen.wrapped);
    REQUIRE(screen.rows.size() == 5);
    const std::string median = members == 8 ? "0.46710" : "0.74710", worst = members == 8 ? "0.50210" : " 1.0621";
    CHECK(screen.rows[0] == "step  468/2340  loss " + median + "  best 0.43210  worst " + worst);
    // Folded, it has room for the members.
    CHECK(screen.rows[1] == "epoch 1/5  test  loss " + median + "  best 0.43210 (0)");
    CHECK(screen.rows[2] == "  worst " + worst + " (" + std::to_string(members - 1) + ")  accuracy 0.85000");
    // The time left comes before the range of the losses.
    CHECK(screen.rows[3] == "[====>                ]  20%   468/2340  loss " + median + "  1:23");
  }
}

TEST_CASE("100 percent is shown only at completion", "[display]") {
  BarState state = half;
  state.steps = 100000;
  state.step = 99999;
  CHECK(contains(bar_line(state, {80, false, false}), " 99%"));
}

TEST_CASE("the bar stays below the lines and ends on a line of its own", "[display]") {
  for (const int columns : {20, 30, 80, 120}) {
    Collector output(columns);
    double clock = 100;
    {
      const auto shown = make_display({}, terminal_on(output.fd(), true, clock));
      shown->on(started());
      for (std::int64_t step = 1; step <= 2340; ++step) {
        clock += 0.01;
        shown->on(Progressed{step, (step - 1) / 468 + 1});
        if (step == 1 || step % 468 == 0) shown->on(logged(step));
      }
      shown->on(ended(2340));
    }
    const Screen screen(output.finish(), columns);
    CAPTURE(columns, screen.rows);
    CHECK_FALSE(screen.wrapped);
    REQUIRE(screen.rows.size() >= 8);
    CHECK(screen.rows.back().empty());
    CHECK(contains(screen.rows[screen.rows.size() - 2], "100%"));
    CHECK(contains(screen.rows[0], "step    1/2340"));
    // Only the last row is a bar: all others were taken away.
    const auto bars = std::count_if(screen.rows.begin(), screen.rows.end(),
                                    [](const std::string& row) { return contains(row, "%"); });
    CHECK(bars == 1);
  }
}

TEST_CASE("the bar follows the terminal's width", "[display]") {
  Collector output(120);
  double clock = 100;
  auto shown = make_display({}, terminal_on(output.fd(), true, clock));
  shown->on(started());
  shown->on(Progressed{1, 1});
  const std::size_t size = output.wait_beyond(0);
  output.resize(20);
  clock += 1;
  shown->on(Progressed{2, 1});
  output.wait_beyond(size);
  shown.reset();
  const std::string text = output.finish();
  const std::size_t second = text.rfind('\r', text.rfind('\r') - 1);  // the last takes the bar away
  CHECK(Screen(text.substr(0, second), 120).rows[0].size() > 20);
  CHECK(Screen(text.substr(second), 20).rows[0].size() < 20);
}

TEST_CASE("the bar is drawn at most fifteen times a second", "[display]") {
  Collector output(80);
  double clock = 100;
  auto shown = make_display({}, terminal_on(output.fd(), true, clock));
  shown->on(started());
  std::size_t size = 0;
  for (std::int64_t step = 1; step <= 1000; ++step) {
    clock += 0.001;
    shown->on(Progressed{step, 1});
    if (step % 100 == 1) size = output.wait_beyond(size);  // one that is superseded at once would not be drawn
  }
  shown.reset();
  const std::string& text = output.finish();
  CHECK(std::count(text.begin(), text.end(), '%') <= 16);
  CHECK(std::count(text.begin(), text.end(), '%') >= 10);
}

TEST_CASE("a run that ends in an error leaves an empty line for it", "[display]") {
  Collector output(80);
  double clock = 100;
  auto shown = make_display({}, terminal_on(output.fd(), true, clock));
  shown->on(started());
  shown->on(Progressed{1, 1});
  shown.reset();
  const Screen screen(output.finish(), 80);
  REQUIRE(screen.rows.size() == 1);
  CHECK(screen.rows[0].empty());
}

TEST_CASE("in a pipe each log is one plain line", "[display]") {
  Collector output;
  double clock = 100;
  DisplayOptions options;
  options.progress = Progress::bar;  // asked for, but nothing can move there
  auto shown = make_display(options, terminal_on(output.fd(), false, clock));
  shown->on(started());
  shown->on(Progressed{100, 1});
  shown->on(logged(100));
  shown->on(ended(100));
  shown.reset();
  CHECK(output.finish() ==
        "step  100/2340  epoch 1/5  loss 0.43210  accuracy 0.85000  grad_norm  1.2340  lr 0.001  12,345 examples/s\n");
}

TEST_CASE("without progress, warnings remain", "[display]") {
  for (const bool quiet : {false, true}) {
    Collector output(80);
    double clock = 100;
    DisplayOptions options;
    options.progress = quiet ? Progress::automatic : Progress::none;
    options.quiet = quiet;
    auto shown = make_display(options, terminal_on(output.fd(), true, clock));
    shown->on(started());
    shown->on(Progressed{1, 1});
    shown->on(logged(1));
    shown->on(Warned{"bfloat16 is slow here"});
    shown->on(ended(1));
    shown.reset();
    CHECK(output.finish() == "warning: bfloat16 is slow here\n");
  }
}

TEST_CASE("a closed output does not end the process", "[display]") {
  const auto old = std::signal(SIGPIPE, SIG_DFL);
  let_writes_fail();
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  ::close(ends[0]);
  Output output(ends[1]);
  output.write("text");
  CHECK(output.broken());
  output.write("more");
  {
    LinePrinter printer(ends[1], true);
    printer.set_status("status");
    printer.print("line\n");
  }
  ::close(ends[1]);
  std::signal(SIGPIPE, old);
}

TEST_CASE("NO_COLOR removes colour only, and TERM=dumb the moving bar", "[display]") {
  Collector output(80);
  const Variable term("TERM", "xterm");
  {
    const Variable none("NO_COLOR", nullptr);
    CHECK(use_color(Color::automatic, output.fd()));
    CHECK_FALSE(use_color(Color::never, output.fd()));
    const Variable dumb("TERM", "dumb");
    CHECK_FALSE(use_color(Color::automatic, output.fd()));
  }
  const Variable set("NO_COLOR", "1");
  CHECK_FALSE(use_color(Color::automatic, output.fd()));
  CHECK(use_color(Color::always, output.fd()));
  const Variable empty("NO_COLOR", "");
  CHECK(use_color(Color::automatic, output.fd()));
  Collector pipe;
  CHECK_FALSE(use_color(Color::automatic, pipe.fd()));
  // mpirun gives a process a terminal that nobody looks at.
  for (const char* const variable : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "SLURM_STEP_NUM_TASKS"}) {
    const Variable launched(variable, "1");
    CHECK_FALSE(use_color(Color::automatic, output.fd()));
    CHECK(use_color(Color::always, output.fd()));
  }
}

TEST_CASE("the first variable of the locale that is set decides about UTF-8", "[display]") {
  const Variable all("LC_ALL", nullptr), type("LC_CTYPE", "C.UTF-8"), lang("LANG", "C");
  CHECK(locale_is_utf8());
  const Variable plain("LC_ALL", "C");
  CHECK_FALSE(locale_is_utf8());
  const Variable spelt("LC_ALL", "en_US.utf8");
  CHECK(locale_is_utf8());
}

TEST_CASE("the reason why a run stopped is shown as an error, also without progress", "[display]") {
  for (const Progress progress : {Progress::plain, Progress::none}) {
    Collector output;
    double clock = 100;
    DisplayOptions options;
    options.progress = progress;
    make_display(options, terminal_on(output.fd(), false, clock))->on(Warned{"step 3: not finite", true});
    CHECK(output.finish() == "error: step 3: not finite\n");
  }
}
