// Signals that end a run in good order.
#pragma once

#include <atomic>

namespace pmaptrain::app {

// While it lives, INT, TERM and HUP only set a flag, each unless it was ignored at the start (nohup); a second one has
// its default action at once. One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // 0, or the number of the signal that came.
  static const std::atomic<int>* flag();
};

// Ends the process by the signal's default action, so that shells and schedulers see it.
void raise_by_default(int signal);

}  // namespace pmaptrain::app
