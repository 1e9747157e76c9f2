// Which elements of image and result a window multiplies, in runs that a loop can walk without further conditions.
#pragma once

#include <cstdint>
#include <vector>

#include "core/ops/conv/window.h"

namespace pmaptrain::ops {

// Targets first + q · stride, for 0 <= q < count. All of them use the same elements of the window, tap + t · tap_stride
// for 0 <= t < taps; target q uses element t with the source + q · source_stride + t · source_tap_stride.
struct Run {
  std::int64_t first = 0, stride = 1, count = 0;
  std::int64_t tap = 0, tap_stride = 1, taps = 0;
  std::int64_t source = 0, source_stride = 1, source_tap_stride = 1;
};

// Every position of the window as a target, elements of the image as sources: the sums of a convolution.
std::vector<Run> runs_to_positions(const Window& window);
// The transpose: every element of the image as a target, positions as sources. A stride of s makes s kinds of
// elements.
std::vector<Run> runs_to_elements(const Window& window);

}  // namespace pmaptrain::ops
