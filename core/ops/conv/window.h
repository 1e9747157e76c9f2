// The geometry that convolution and pooling share: windows that slide over height and width of an NHWC image, or over
// depth, height and width of an NDHWC volume.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/graph/type.h"

namespace pmaptrain::ops {

// One of the dimensions: `in` elements with padding of `low` before and `high` after them, and `out` positions of a
// window of `window` elements. Positions are `stride` apart, and the elements of a window `dilation`.
struct Window {
  std::int64_t in = 1;
  std::int64_t window = 1;
  std::int64_t stride = 1;
  std::int64_t low = 0;
  std::int64_t high = 0;
  std::int64_t out = 1;
  std::int64_t dilation = 1;

  // The distance from the window's first element to its last.
  std::int64_t extent() const { return (window - 1) * dilation + 1; }
  // The input index of the window's element 0 at a position. A negative index is padding.
  std::int64_t start(std::int64_t position) const { return position * stride - low; }
  // The window's elements at a position that are not padding are those with first <= i < last.
  std::int64_t first(std::int64_t position) const { return up_to(std::max<std::int64_t>(0, -start(position))); }
  std::int64_t last(std::int64_t position) const {
    return std::min(window, up_to(std::max<std::int64_t>(0, in - start(position))));
  }

  // The window's elements that are not padding, over all positions.
  double taps() const;

  // The number of window elements within `distance`. Division is slow and rarely needed, so it is avoided for a
  // dilation of 1.
  std::int64_t up_to(std::int64_t distance) const {
    return dilation == 1 ? distance : (distance + dilation - 1) / dilation;
  }
};
using Windows = std::array<Window, 3>;  // depth, height, width: an image has a depth of 1

// Checks sizes and attributes of the op `op` and computes the output sizes. `image` is its shape, NHWC or NDHWC, and
// `size` the window's height and width, behind the depth of a volume. An empty dilation means 1. Throws TypeError that
// names the wrong attribute or size.
Windows slide(std::string_view op, const Shape& image, std::span<const std::int64_t> size,
              std::span<const std::int64_t> strides, std::span<const std::pair<std::int64_t, std::int64_t>> padding,
              std::span<const std::int64_t> dilation = {});

// Attributes as text for messages, in the form of program text: "[1,2]", "[(0,1),(0,1)]".
std::string pairs_text(std::span<const std::pair<std::int64_t, std::int64_t>> pairs);

// Throws TypeError unless there are `names.size()` operands, all of the same floating-point type.
void expect_floating(std::string_view op, std::span<const Type> operands, std::span<const std::string_view> names);

}  // namespace pmaptrain::ops
