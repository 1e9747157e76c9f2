#include "app/display/line_printer.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>

#include "app/display/patience.h"
#include "app/display/terminal.h"
#include "core/base/error.h"
#include "core/base/signals.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/base/wrap.h"

namespace pmaptrain::display {
namespace {

constexpr std::string_view to_start = "\r";
constexpr std::string_view erase_rest = "\x1b[K";
constexpr std::string_view erase_below = "\x1b[J";
constexpr std::chrono::milliseconds signal_interval{100};  // within which a signal is told
constexpr std::size_t write_bytes = 8192;  // about as much is taken at a time: what is being written cannot go any more

// Rows of a terminal that the lines of a status take. Most terminals fold lines anew as they become narrower.
int rows_of(std::string_view status, int width) {
  int rows = 1, columns = 0;
  for (std::size_t at = 0; at < status.size();) {
    if (status[at] == '\x1b') {
      at = std::min(status.find('m', at), status.size() - 1) + 1;
      continue;
    }
    const Utf8Character character = utf8_at(status, at);
    at += character.bytes;
    columns += display_width(character.code);
    if (character.code == '\n' || (width > 0 && columns > width)) {
      ++rows;
      columns = character.code == '\n' ? 0 : display_width(character.code);
    }
  }
  return rows;
}

// The status over rows that have another one: overwritten in place and erased behind, so that nothing flickers.
std::string over(std::string_view status, bool has_more_rows) {
  std::string text;
  for (const char c : status) {
    if (c == '\n') text += erase_rest;
    text += c;
  }
  return text + std::string(has_more_rows ? erase_below : erase_rest);
}

std::string gone_line(std::int64_t lines) {
  return "... " + counted(lines, "line") + " not shown; log.txt has " + (lines == 1 ? "it" : "them") + "\n";
}

}  // namespace

struct LinePrinter::Queue {
  struct Entry {
    std::string text;
    int lines = 1;
    Keep keep = Keep::longer;
  };

  Queue(int fd, const std::atomic<int>* stopped, TellSignal tell, std::function<int()> columns)
      : stop(stopped), tell_signal(tell), width(std::move(columns)), output(fd) {}

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Entry> entries;
  std::size_t bytes = 0;  // of the entries
  std::int64_t gone = 0;  // lines that were dropped since the last write
  std::string status;     // to be shown below the lines; empty: none
  bool closing = false;   // nothing comes any more
  bool finished = false;  // the thread has ended
  bool broken = false;    // the output has been closed
  const std::atomic<int>* const stop;
  TellSignal tell_signal;  // null once it was told
  const std::function<int()> width;
  Output output;           // the thread's, as is what follows
  std::string shown = {};  // the status on the terminal, behind whose end the cursor is

  void push(Entry entry, std::optional<std::string> new_status) {
    const std::lock_guard lock(mutex);
    if (broken) return;
    if (new_status) status = std::move(*new_status);
    bytes += entry.text.size();
    entries.push_back(std::move(entry));
    while (bytes > max_waiting_bytes && entries.size() > 1) drop();
    changed.notify_all();
  }

  void drop() {
    auto oldest = std::find_if(entries.begin(), entries.end(), [](const Entry& e) { return e.keep == Keep::passing; });
    if (oldest == entries.end()) oldest = entries.begin();
    bytes -= oldest->text.size();
    gone += oldest->lines;
    entries.erase(oldest);
  }

  // Takes the next piece of what waits. The status follows the last of the lines.
  std::string next() {
    const bool lines = gone > 0 || !entries.empty();
    const int rows = shown.empty() ? 1 : rows_of(shown, width ? width() : 0);
    std::string text(to_start);
    if (rows > 1) text += "\x1b[" + std::to_string(rows - 1) + "A";
    if (!lines) {
      shown = status;
      return text + over(status, rows > 1);
    }
    text = shown.empty() ? "" : text + std::string(rows > 1 ? erase_below : erase_rest);
    if (gone > 0) text += gone_line(std::exchange(gone, 0));
    while (!entries.empty() && text.size() < write_bytes) {
      text += entries.front().text;
      bytes -= entries.front().text.size();
      entries.pop_front();
    }
    shown = entries.empty() ? status : std::string();
    return text + shown;
  }

  void tell_of_signal() {
    const int signal = stop != nullptr && tell_signal != nullptr ? stop->load() : 0;
    if (signal == 0) return;
    std::string text = wrapped(std::exchange(tell_signal, nullptr)(signal), text_columns(width));
    bytes += text.size();
    entries.push_back({std::move(text), 1, Keep::longer});
  }

  // Waits until there is something to do. A signal is looked for now and then: its handler may take no lock, so it
  // cannot wake a thread.
  void wait(std::unique_lock<std::mutex>& lock) {
    const auto is_due = [this] {
      if (!closing) tell_of_signal();
      return closing || gone > 0 || !entries.empty() || status != shown;
    };
    if (stop == nullptr || tell_signal == nullptr) return changed.wait(lock, is_due);
    while (!changed.wait_for(lock, signal_interval, is_due)) {
    }
  }

  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      wait(lock);
      if (gone == 0 && entries.empty() && status == shown) break;
      const std::string text = next();
      lock.unlock();
      output.write(text);
      lock.lock();
      if (!output.broken()) continue;
      broken = true;
      break;
    }
    finished = true;
    changed.notify_all();
  }
};

LinePrinter::LinePrinter(int fd, bool moving, const std::atomic<int>* stop, TellSignal tell_signal,
                         std::function<int()> width)
    : queue_(std::make_shared<Queue>(fd, stop, tell_signal, std::move(width))), stop_(stop), moving_(moving) {
  const BlockSignals blocked;
  try {
    thread_ = std::thread([queue = queue_] {
      // A job in the background whose terminal has `stty tostop` is stopped when it writes; blocked, it would write.
      sigset_t tostop;
      sigemptyset(&tostop);
      sigaddset(&tostop, SIGTTOU);
      pthread_sigmask(SIG_UNBLOCK, &tostop, nullptr);
      queue->run();
    });
  } catch (const std::system_error& error) {
    fail_resource(std::string("the thread that writes to standard error could not be started: ") + error.what(),
                  "other processes of this user, or a limit on them (ulimit -u), leave no room for it");
  }
}

LinePrinter::~LinePrinter() {
  Patience patience(stop_);
  std::unique_lock lock(queue_->mutex);
  queue_->status.clear();
  queue_->closing = true;
  queue_->changed.notify_all();
  while (!queue_->finished && !patience.is_over()) queue_->changed.wait_for(lock, Patience::interval);
  const bool finished = queue_->finished;
  lock.unlock();
  finished ? thread_.join() : thread_.detach();
}

void LinePrinter::set_status(std::string text) {
  if (!moving_) return;
  const std::lock_guard lock(queue_->mutex);
  queue_->status = std::move(text);
  if (!queue_->broken) queue_->changed.notify_all();
}

void LinePrinter::print(std::string text, int lines, Keep keep, std::optional<std::string> status) {
  if (!moving_) status.reset();
  queue_->push({std::move(text), lines, keep}, std::move(status));
}

void LinePrinter::keep_status(std::string text) {
  if (moving_) print(std::move(text) + "\n", 1, Keep::longer, std::string());
}

}  // namespace pmaptrain::display
