// What a person sees while a run goes on, on standard error: a bar that moves, or plain lines, or only warnings.
#pragma once

#include <atomic>
#include <memory>

#include "app/display/terminal.h"
#include "core/train/events.h"

namespace pmaptrain::display {

struct DisplayOptions {
  Progress progress = Progress::automatic;
  Color color = Color::automatic;
  bool quiet = false;                      // as Progress::none
  bool verbose = false;                    // step lines also say the time since the start
  const std::atomic<int>* stop = nullptr;  // once a signal sets it, the end waits for no reader any more
};

// The consumer to attach to a run. Where the bar does not move (standard error is no terminal, or TERM is dumb),
// `automatic` and `bar` give plain lines. It never waits for who reads them, until its destruction: that takes an
// unfinished bar away and waits until all is written, so an Error that ends the run is printed after it. Events must
// come from one thread at a time. Throws Error (resource) where it cannot have its thread.
std::unique_ptr<train::Consumer> make_display(const DisplayOptions& options);
std::unique_ptr<train::Consumer> make_display(const DisplayOptions& options, Terminal terminal);

}  // namespace pmaptrain::display
