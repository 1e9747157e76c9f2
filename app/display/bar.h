// The progress bar as one line of text: a pure function of how far the run is and how wide the terminal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/train/events.h"
#include "core/train/spread.h"

namespace pmaptrain::display {

struct BarState {
  std::int64_t step = 0, steps = 0;    // completed; planned in total
  std::int64_t epoch = 0, epochs = 0;  // 0: not known
  train::Measures measures;            // of the last log; the first is the loss
  std::optional<train::Spread> loss;   // of several members, whose medians the measures are
  double examples_per_second = 0;      // of the last log; 0: not known
  double seconds_left = -1;            // negative: not known
  double seconds = -1;                 // of an ended run, shown instead of the time left
};

struct BarStyle {
  int width = 80;      // columns to fill at most, at least 4
  bool color = false;  // ANSI colours, which take no columns
  bool utf8 = false;
};

// For example "epoch 2/5 [=====>    ]  38% 890/2340  loss 0.4321  12,345 examples/s  0:42 left". Where it does not fit,
// parts go, the least important first: speed, metrics, epoch, the names of the best and the worst member, time left,
// the best and the worst loss, step, loss, the bar. The percentage stays.
std::string bar_line(const BarState& state, const BarStyle& style);

}  // namespace pmaptrain::display
