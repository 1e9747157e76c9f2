// The geometry of a window that slides over height and width, for convolution and pooling.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/shape.h"
#include "core/spec/spec.h"

namespace pmaptrain::model {

struct Window {
  std::vector<std::pair<std::int64_t, std::int64_t>> padding;  // low and high, of height and width
  std::vector<std::int64_t> output;                            // height and width; not positive where it does not fit
};

// SAME gives ceil(input / stride) outputs and pads the odd element after, as TensorFlow and XLA do; VALID pads nothing.
// `image` is [height, width, channels]; `dilation` is how far apart the elements of the window meet it.
Window place_window(const spec::Padding& padding, const Shape& image, const std::vector<std::int64_t>& size,
                    const std::vector<std::int64_t>& strides, const std::vector<std::int64_t>& dilation = {1, 1});

// "SAME", "VALID" or "[[1,1],[0,2]]"
std::string describe(const spec::Padding& padding);

}  // namespace pmaptrain::model
