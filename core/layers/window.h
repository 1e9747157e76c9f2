// The geometry of a sliding window over height and width, for convolution and pooling.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/shape.h"
#include "core/declare/values.h"

namespace pmaptrain::layers {

using declare::Padding;
using declare::PaddingKind;

struct Window {
  std::vector<std::pair<std::int64_t, std::int64_t>> padding;  // before and after, for height and width
  std::vector<std::int64_t> output;  // height and width; not positive if the window does not fit
};

// SAME gives ceil(input / stride) outputs; if the padding is odd, the extra element is after the image, as in
// TensorFlow and XLA. VALID has no padding. `image` is [height, width, channels]; `dilation` is the spacing of window
// elements.
Window place_window(const Padding& padding, const Shape& image, const std::vector<std::int64_t>& size,
                    const std::vector<std::int64_t>& strides, const std::vector<std::int64_t>& dilation = {1, 1});

// "SAME", "VALID" or "[[1,1],[0,2]]"
std::string describe(const Padding& padding);

}  // namespace pmaptrain::layers
