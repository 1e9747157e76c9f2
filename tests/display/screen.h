// A terminal for tests: what was written to it, and what a person sees of that.
#pragma once

#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "core/base/text.h"
#include "core/base/utf8.h"
#include "tests/catch.h"

namespace pmaptrain::test {

// A descriptor to write to; what was written is collected by a thread.
class Collector {
 public:
  static constexpr char end = '\4';

  explicit Collector(int columns = 0, int lines = 24) {
    int ends[2];
    if (columns == 0) {
      REQUIRE(::pipe(ends) == 0);
    } else {
      winsize size{};
      size.ws_col = static_cast<unsigned short>(columns);
      size.ws_row = static_cast<unsigned short>(lines);
      termios modes{};
      ::cfmakeraw(&modes);
      REQUIRE(::openpty(&ends[0], &ends[1], nullptr, &modes, &size) == 0);
    }
    read_ = ends[0];
    write_ = ends[1];
    thread_ = std::thread([this] {
      char buffer[4096];
      while (!text_.ends_with(end)) {
        const ssize_t count = ::read(read_, buffer, sizeof buffer);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return;
        text_.append(buffer, static_cast<std::size_t>(count));
        size_ += static_cast<std::size_t>(count);
      }
      text_.pop_back();
    });
  }
  ~Collector() {
    finish();
    ::close(read_);
  }
  int fd() const { return write_; }
  void resize(int columns) const {
    winsize size{};
    ::ioctl(write_, TIOCGWINSZ, &size);
    size.ws_col = static_cast<unsigned short>(columns);
    ::ioctl(write_, TIOCSWINSZ, &size);
  }
  // Waits up to ten seconds until more than so much was written; how much it is then.
  std::size_t wait_beyond(std::size_t size) const {
    for (int i = 0; i < 10000 && size_ <= size; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return size_;
  }
  // Who writes must be gone. A terminal that is closed may lose what has not been read yet: what is read to the end is
  // known by a last character of our own.
  const std::string& finish() {
    if (thread_.joinable()) {
      CHECK(::write(write_, &end, 1) == 1);
      thread_.join();
      ::close(write_);
    }
    return text_;
  }

 private:
  int read_ = -1, write_ = -1;
  std::string text_;
  std::atomic<std::size_t> size_ = 0;
  std::thread thread_;
};

// As much of a terminal as displays use: the rows that a person would see, and whether any line wrapped.
struct Screen {
  std::vector<std::string> rows;
  bool wrapped = false;

  Screen(const std::string& text, int columns) {
    std::vector<std::vector<std::string>> cells(1);  // by row; each has a character
    std::size_t row = 0, column = 0;
    for (std::size_t i = 0; i < text.size();) {
      if (text[i] == '\r') {
        column = 0;
        ++i;
      } else if (text[i] == '\n') {
        column = 0;
        if (++row == cells.size()) cells.emplace_back();
        ++i;
      } else if (text[i] == '\x1b') {
        const std::size_t end = text.find_first_of("mKJA", i);
        if (text[end] == 'K' || text[end] == 'J') cells[row].resize(std::min(column, cells[row].size()));
        if (text[end] == 'J') cells.resize(row + 1);
        if (text[end] == 'A') row -= std::min(row, static_cast<std::size_t>(std::stoi(text.substr(i + 2))));
        i = end + 1;
      } else {
        const std::size_t bytes = utf8_at(text, i).bytes;
        if (column >= cells[row].size()) cells[row].resize(column + 1, " ");
        cells[row][column++] = text.substr(i, bytes);
        wrapped = wrapped || static_cast<int>(column) >= columns;
        i += bytes;
      }
    }
    for (const std::vector<std::string>& one : cells) rows.push_back(join(one, ""));
  }
};

}  // namespace pmaptrain::test
