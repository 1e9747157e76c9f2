// What a reader gets who reads late, or never.
#include "app/display/line_printer.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include "core/base/clock.h"
#include "tests/catch.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::display;
using test::contains;

namespace {

// A pipe that is full before anything is written: whoever writes there waits.
class FullPipe {
 public:
  FullPipe() {
    REQUIRE(::pipe(ends_) == 0);
    REQUIRE(::fcntl(ends_[1], F_SETPIPE_SZ, 4096) == 4096);
    REQUIRE(::write(ends_[1], std::string(4096, '#').data(), 4096) == 4096);
  }
  ~FullPipe() {
    close_writer();
    ::close(ends_[0]);
  }
  FullPipe(const FullPipe&) = delete;
  FullPipe& operator=(const FullPipe&) = delete;

  int fd() const { return ends_[1]; }
  int read_end() const { return ends_[0]; }
  // What comes from now on until no writer is left.
  std::string read_all() {
    std::string text;
    char bytes[4096];
    for (ssize_t count; (count = ::read(ends_[0], bytes, sizeof bytes)) > 0;) {
      text.append(bytes, static_cast<std::size_t>(count));
    }
    return text.substr(4096);
  }
  void close_writer() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  int ends_[2] = {-1, -1};
};

// What a reader gets who comes when `show` has shown everything, and perhaps is about to end.
template <class F>
std::string read_late(bool moving, F&& show) {
  FullPipe pipe;
  std::atomic<bool> shown = false;
  std::thread writer([&] {
    {
      LinePrinter printer(pipe.fd(), moving);
      show(printer);
      shown = true;
    }
    pipe.close_writer();
  });
  while (!shown) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  std::string text = pipe.read_all();
  writer.join();
  return text;
}

std::string line(int number) { return "step " + std::to_string(number) + std::string(80, '.') + "\n"; }

}  // namespace

TEST_CASE("a late reader gets every line in order, and the last bar", "[display]") {
  std::string expected;
  const std::string text = read_late(true, [&](LinePrinter& printer) {
    for (int i = 0; i < 1000; ++i) {
      printer.set_status("bar " + std::to_string(i));
      printer.print(line(i), 1, Keep::passing);
      expected += line(i);
    }
    printer.keep_status("the last bar");
    expected += "the last bar\n";
  });
  // What the thread took before it waited ended with a bar, which was erased.
  std::string seen;
  std::istringstream lines(text);
  for (std::string one; std::getline(lines, one);) {
    const std::size_t erased = one.rfind("\x1b[K");
    seen += (erased == std::string::npos ? one : one.substr(erased + 3)) + "\n";
  }
  CHECK(seen == expected);
  CHECK(text.find("bar ") == text.rfind("bar "));
}

TEST_CASE("when the buffer is full the oldest step lines are dropped, and one line states their number", "[display]") {
  constexpr int steps = 30000;
  const std::string text = read_late(false, [&](LinePrinter& printer) {
    for (int i = 0; i < steps; ++i) {
      printer.print(line(i), 1, Keep::passing);
      if (i == 100) printer.print("warning: this stays\n");
    }
  });
  CHECK(text.size() < LinePrinter::max_waiting_bytes + 20000);
  CHECK(text.size() > LinePrinter::max_waiting_bytes - 20000);
  CHECK(text.find("warning: this stays\n") > text.find("... "));
  CHECK(text.ends_with(line(steps - 1)));
  // Where lines were dropped before the printer's thread took its first ones, these begin with a line of their own.
  std::int64_t notices = 0, kept = 0, dropped = 0;
  std::istringstream lines(text);
  for (std::string one; std::getline(lines, one);) {
    if (one.starts_with("step ")) ++kept;
    if (!one.starts_with("... ")) continue;
    ++notices;
    CHECK(one.ends_with(" lines not shown; log.txt has them"));
    std::string count = one.substr(4, one.find(' ', 4) - 4);
    std::erase(count, ',');
    dropped += std::stoll(count);
  }
  CHECK(notices >= 1);
  CHECK(notices <= 2);
  CHECK(kept + dropped == steps);
}

TEST_CASE("warnings alone have a bound, too", "[display]") {
  const std::string text = read_late(false, [&](LinePrinter& printer) {
    for (int i = 0; i < 30000; ++i) printer.print(line(i));
  });
  CHECK(text.size() < LinePrinter::max_waiting_bytes + 20000);
  CHECK(contains(text.substr(0, 20000), " lines not shown; log.txt has them\n"));
}

TEST_CASE("an end waits for the reader until a signal comes, and then half a second", "[display]") {
  for (const bool before : {true, false}) {
    INFO(before);
    FullPipe pipe;
    std::atomic<int> stop = before ? SIGTERM : 0;
    std::optional<LinePrinter> printer;
    printer.emplace(pipe.fd(), false, &stop);
    printer->print("line\n");
    const Clock::time_point begin = Clock::now();
    std::thread signal([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      stop = SIGTERM;
    });
    printer.reset();
    const double waited = seconds_since(begin);
    signal.join();
    CHECK(waited >= (before ? 0.49 : 0.59));
    CHECK(waited < 5);
    // The thread that was left behind still writes when somebody reads.
    std::string text;
    for (char byte = 0; !text.ends_with("line\n") && ::read(pipe.read_end(), &byte, 1) == 1;) text += byte;
    CHECK(text.size() == 4096 + 5);
  }
}

TEST_CASE("a signal is told at once, by the thread that writes, whatever the caller does", "[display]") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  std::atomic<int> stop = 0;
  {
    LinePrinter printer(ends[1], true, &stop, [](int signal) { return "signal " + std::to_string(signal) + "\n"; });
    printer.set_status("bar");
    std::string text;
    for (char byte = 0; !text.ends_with("bar\x1b[K") && ::read(ends[0], &byte, 1) == 1;) text += byte;
    stop = SIGTERM;
    // Nothing is printed meanwhile, and the bar stays below the line.
    text.clear();
    for (char byte = 0; !text.ends_with("bar") && ::read(ends[0], &byte, 1) == 1;) text += byte;
    CHECK(text == "\r\x1b[Ksignal 15\nbar");
    printer.print("line\n");
  }
  ::close(ends[1]);
  std::string rest;
  for (char byte = 0; ::read(ends[0], &byte, 1) == 1;) rest += byte;
  ::close(ends[0]);
  CHECK(contains(rest, "line\n"));
  CHECK_FALSE(contains(rest, "signal"));  // once
}
