// What a person sees while a run goes on, on standard error: a bar that moves, or plain lines, or only warnings.
#pragma once

#include <memory>

#include "app/display/terminal.h"
#include "core/train/events.h"

namespace pmaptrain::display {

struct DisplayOptions {
  Progress progress = Progress::automatic;
  Color color = Color::automatic;
  bool quiet = false;    // as Progress::none
  bool verbose = false;  // step lines also say the time since the start
};

// The consumer to attach to a run. Where the bar does not move (standard error is no terminal, or TERM is dumb),
// `automatic` and `bar` give plain lines. Its destruction takes an unfinished bar away, so an Error that ends the run
// is printed after it. Events must come from one thread at a time.
std::unique_ptr<train::Consumer> make_display(const DisplayOptions& options);
std::unique_ptr<train::Consumer> make_display(const DisplayOptions& options, Terminal terminal);

}  // namespace pmaptrain::display
