// How long a process waits at its end until its output has been read.
#pragma once

#include <atomic>
#include <chrono>

namespace pmaptrain::display {

// Without end until a signal has set `stop`, and half a second more from when that is first seen: what is shown during
// a run and what is said at its end, one after the other, hold a process a second at most. Null: without end.
class Patience {
 public:
  // How often to ask. A signal handler cannot wake a thread, since it may take no lock.
  static constexpr std::chrono::milliseconds interval{20};

  explicit Patience(const std::atomic<int>* stop) : stop_(stop) {}

  bool is_over() {
    if (stop_ == nullptr || stop_->load() == 0) return false;
    const auto now = std::chrono::steady_clock::now();
    if (!seen_) {
      seen_ = true;
      since_ = now;
    }
    return now - since_ >= std::chrono::milliseconds{500};
  }

 private:
  const std::atomic<int>* stop_;
  bool seen_ = false;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace pmaptrain::display
