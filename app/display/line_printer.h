// Prints permanent lines and, on a terminal with cursor movement, a status below them, which is redrawn in place: a
// line, or several.
//
// A separate thread writes them, so the caller never blocks: a paused pager or a terminal stopped by Ctrl-S must not
// stop the training. The buffer is bounded. A new status line replaces the previous one. If lines exceed
// max_waiting_bytes, the oldest are dropped, `passing` ones first, and one line states their number when writing
// continues.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace pmaptrain::display {

enum class Keep : unsigned char { passing, longer };

class LinePrinter {
 public:
  static constexpr std::size_t max_waiting_bytes = std::size_t{1} << 20;

  // What is told of a signal: lines with their ends.
  using TellSignal = std::string (*)(int signal);
  // With `moving` false, a status is not shown at all. `stop`: what a signal sets, or null; `tell_signal`: what to
  // print as soon as it has, whatever the caller is busy with, or null. `width`: the terminal's columns now, by which
  // lines of a status wrap that were written to a wider one, and between whose words what tells of a signal is broken;
  // may be empty. It is called by the thread that writes. Throws Error (resource) where the thread cannot be started.
  LinePrinter(int fd, bool moving, const std::atomic<int>* stop = nullptr, TellSignal tell_signal = nullptr,
              std::function<int()> width = {});
  // Takes the status line away (the cursor is at the start of an empty line) and waits until everything is written,
  // once a signal came for half a second at most. A thread that still waits for the reader then is left behind with
  // what it has: the process is about to end, nothing that the thread holds is used elsewhere, and nothing can
  // wake it without changing the descriptor for other processes.
  ~LinePrinter();
  LinePrinter(const LinePrinter&) = delete;
  LinePrinter& operator=(const LinePrinter&) = delete;

  // Replaces the status. Its lines fit the terminal; the last one has no end of line.
  void set_status(std::string text);
  // Shows `text`, `lines` whole lines with their ends, above the status line, which may be renewed with it.
  void print(std::string text, int lines = 1, Keep keep = Keep::longer, std::optional<std::string> status = {});
  // Leaves this as a line; there is no status line then.
  void keep_status(std::string text);

 private:
  struct Queue;
  std::shared_ptr<Queue> queue_;
  const std::atomic<int>* stop_;
  bool moving_;
  std::thread thread_;
};

}  // namespace pmaptrain::display
