// What a person sees while a sweep goes on: a line for each run that has ended, and below them, on a terminal, how far
// the sweep is.
#pragma once

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
  ~SweepDisplay();
  SweepDisplay(const SweepDisplay&) = delete;
  SweepDisplay& operator=(const SweepDisplay&) = delete;

  void show(const sweep::Progress& progress);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The line below: "12 of 64 runs done, 2 running, 1 failed; best accuracy 0.93 (trial 3); 1:20 left".
std::string sweep_line(const sweep::Progress& progress, const spec::SweepSpec& sweep, int width);
// The line of a run that has ended.
std::string run_line(const sweep::Row& row, const spec::SweepSpec& sweep);

}  // namespace pmaptrain::display
