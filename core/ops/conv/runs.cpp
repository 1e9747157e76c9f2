#include "core/ops/conv/runs.h"

#include <algorithm>

namespace pmaptrain::ops {
namespace {

// `reach(target)` returns a run of this one target. Neighbouring targets, `stride` apart, with the same taps become one
// run.
template <class F>
std::vector<Run> runs(std::int64_t targets, std::int64_t stride, const F& reach) {
  std::vector<Run> found;
  for (std::int64_t phase = 0; phase < std::min(stride, targets); ++phase) {
    for (std::int64_t target = phase; target < targets; target += stride) {
      const Run next = reach(target);
      if (target != phase && found.back().taps == next.taps && found.back().tap == next.tap) {
        ++found.back().count;
      } else {
        found.push_back(next);
      }
    }
  }
  return found;
}

}  // namespace

std::vector<Run> runs_to_positions(const Window& window) {
  return runs(window.out, 1, [&](std::int64_t position) {
    const std::int64_t tap = window.first(position), taps = std::max<std::int64_t>(0, window.last(position) - tap);
    Run run{.first = position, .count = 1, .source_stride = window.stride, .source_tap_stride = window.dilation};
    if (taps == 0) return run;
    run.tap = tap;
    run.taps = taps;
    run.source = window.start(position) + tap * window.dilation;
    return run;
  });
}

std::vector<Run> runs_to_elements(const Window& window) {
  return runs(window.in, window.stride, [&](std::int64_t element) {
    Run run{.first = element, .stride = window.stride, .count = 1};
    for (std::int64_t tap = 0; tap < window.window; ++tap) {
      // Start of the window whose tap is at this element.
      const std::int64_t start = element + window.low - tap * window.dilation;
      if (start < 0) break;
      if (start % window.stride != 0 || start / window.stride >= window.out) continue;
      const std::int64_t position = start / window.stride;
      if (run.taps == 0) {
        run.tap = tap;
        run.source = position;
      } else if (run.taps == 1) {
        run.tap_stride = tap - run.tap;
        run.source_tap_stride = position - run.source;
      }
      ++run.taps;
    }
    return run;
  });
}

}  // namespace pmaptrain::ops
