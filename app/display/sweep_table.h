// How far a sweep is, as lines of text: a pure function of its progress and of the terminal's size.
#pragma once

#include <string>

#include "core/spec/sweep.h"
#include "core/sweep/run.h"

namespace pmaptrain::display {

struct SweepTableStyle {
  int width = 80;      // columns to fill at most
  int height = 24;     // lines to fill at most; 1: without a table
  bool color = false;  // ANSI colours, which take no columns
};

// For example
//
//   3 of 8 runs done, best accuracy 0.93125 (trial 3), 1:20 left, 2 running, 3 waiting
//   trial  accuracy  done  learning_rate  weight_decay  training loss  epoch     step
//    0004   0.85120   55%        0.01432          0.01        0.43210      3  100/180
//    0005   0.91030   55%         0.0712        0.0001        0.30120      3  100/180
//
// In a narrow terminal the first sentence is folded, columns go from the right, and parameters are cut. Where
// trials do not fit, a last line has their number. Lines are joined, without an end of the last one.
std::string sweep_table(const sweep::Progress& progress, const spec::SweepSpec& sweep, const SweepTableStyle& style);

}  // namespace pmaptrain::display
