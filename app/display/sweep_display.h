// What a person sees while a sweep goes on: a line for each run that has ended, and below them, on a terminal, a table
// of those that run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "app/display/display.h"
#include "core/spec/sweep.h"
#include "core/sweep/run.h"

namespace pmaptrain::display {

class SweepDisplay {
 public:
  // Throws Error (resource) if its thread cannot be started.
  SweepDisplay(const DisplayOptions& options, const spec::SweepSpec& sweep);
  SweepDisplay(const DisplayOptions& options, const spec::SweepSpec& sweep, Terminal terminal);
  // Takes the table away, and waits until all lines are written, after a signal for half a second at most.
  ~SweepDisplay();
  SweepDisplay(const SweepDisplay&) = delete;
  SweepDisplay& operator=(const SweepDisplay&) = delete;

  void show(const sweep::Progress& progress);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The line of a run that has ended. `together`: the size of its ensemble.
std::string run_line(const sweep::Row& row, const spec::SweepSpec& sweep, std::int64_t together = 1);

}  // namespace pmaptrain::display
