// The elements of an image and of a result that a window multiplies, as runs that a loop can process without
// conditions.
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

// The runs of a convolution: targets are positions of the window, sources are elements of the image.
std::vector<Run> runs_to_positions(const Window& window);
// The runs of the transpose: targets are elements of the image, sources are positions. With a stride of s, elements of
// s kinds have different runs.
std::vector<Run> runs_to_elements(const Window& window);

}  // namespace pmaptrain::ops
