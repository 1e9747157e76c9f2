// What a person sees while a run goes on, on standard error: a bar that moves, or plain lines, or only warnings.
#pragma once

#include <atomic>
#include <memory>

#include "app/display/terminal.h"
#include "core/run/records/events.h"

namespace pmaptrain::display {

struct DisplayOptions {
  Progress progress = Progress::automatic;
  Color color = Color::automatic;
  bool quiet = false;                      // as Progress::none
  bool verbose = false;                    // step lines also say the time since the start
  bool mute = false;                       // nothing, not even warnings: another process of the run shows it
  const std::atomic<int>* stop = nullptr;  // set by a signal: a line tells it, and the end does not wait for the output
};

// Whether nothing but warnings and errors is shown.
inline bool is_silent(const DisplayOptions& options) { return options.quiet || options.progress == Progress::none; }

// The consumer to attach to a run. If standard error is no terminal, or TERM is dumb, `automatic` and `bar` give plain
// lines. It never blocks on its output, except for its destructor, which removes an unfinished bar and waits until all
// lines are written, so that an Error that ends the run is printed after them. Events must come from one thread at a
// time. Throws Error (resource) if its thread cannot be started.
std::unique_ptr<run::Consumer> make_display(const DisplayOptions& options);
std::unique_ptr<run::Consumer> make_display(const DisplayOptions& options, Terminal terminal);

}  // namespace pmaptrain::display
