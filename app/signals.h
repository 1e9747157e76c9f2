// Signals that end a run in good order.
#pragma once

#include <atomic>

namespace pmaptrain::app {

// While it lives, INT, TERM and HUP only set a flag, each unless it was ignored at the start (nohup). What comes within
// a second of the first is the same request: `timeout` signals its child and then the child's group, and a terminal
// that goes away may send several. A later one has its default action at once. One at a time.
//
// Where a signal came, its handlers stay: the same request may come once more while the process ends.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // As if this signal came, unless one has come already: it came to another process of a launcher.
  static void take(int signal);

  // 0, or the number of the first signal that came.
  static const std::atomic<int>* flag();
};

// To process 1 of a container the system delivers no signal whose action is the default: from here on INT, TERM and
// HUP, unless they are ignored, end it as they end any other process. Does nothing in another process.
void end_process_one_by_signals();

// The flag of StopSignals while signals only set it, else null: then they end the process, whatever it waits for.
const std::atomic<int>* stop_flag();

// Ends the process by the signal's default action, so that shells and schedulers see it. To process 1 of a container
// the system delivers no such signal: it exits with 128 + the signal.
[[noreturn]] void raise_by_default(int signal);

}  // namespace pmaptrain::app
