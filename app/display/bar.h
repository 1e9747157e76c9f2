// The progress bar as one line of text: a pure function of how far the run is and how wide the terminal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/run/records/events.h"
#include "core/run/records/spread.h"

namespace pmaptrain::display {

struct BarState {
  std::int64_t step = 0, steps = 0;    // completed; planned in total
  std::int64_t epoch = 0, epochs = 0;  // 0: not known
  run::Measures measures;              // the first is the loss
  std::optional<run::Spread> loss;     // of several members, whose medians the measures are
  double examples_per_second = 0;      // of the last log; 0: not known
  double seconds_left = -1;            // negative: not known
  double seconds = -1;                 // of an ended run, shown instead of the time left
  struct Evaluation {
    std::string measure;  // "validation loss"
    double last = 0, best = 0;
  };
  std::optional<Evaluation> evaluation = {};   // none yet
  double steps_per_second = 0;                 // 0: not known
  double elapsed = -1;                         // seconds of the run; this and what follows: negative: not known
  double epoch_elapsed = -1, epoch_left = -1;  // of the epoch
};

// Work that is no training step, which has a bar of its own.
struct WorkState {
  std::string what;                  // "evaluating validation": ASCII
  std::int64_t done = 0, total = 0;  // total 0: not known
  double seconds_left = -1;          // negative: not known
};

struct BarStyle {
  int width = 80;      // columns to fill at most, at least 4
  bool color = false;  // ANSI colours, which take no columns
  bool utf8 = false;
};

// For example "epoch 2/5 [=====>    ]  38% 890/2340  loss 0.4321  12,345 examples/s  0:42 left". Where it does not fit,
// parts go, the least important first: examples per second, the times of the epoch, the time elapsed, steps per second,
// metrics, the best and the last evaluation, epoch, the names of the best and the worst member, the best and the worst
// loss, step, time left, loss, the bar. The percentage stays.
std::string bar_line(const BarState& state, const BarStyle& style);

// For example "evaluating validation  [====>    ]  38%  12/40  0:03 left". Time left and count go first; the words stay
// as far as they fit.
std::string work_line(const WorkState& state, const BarStyle& style);

}  // namespace pmaptrain::display
