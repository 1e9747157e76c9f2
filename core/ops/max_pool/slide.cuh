// Windows that slide over images in kernels: as core/ops/conv/window.h, without dilation.
#pragma once

#include "core/ops/support/device.cuh"

namespace pmaptrain::ops::device {

struct Slide {
  i64 in, out, window, stride, low;

  // The elements of the window at a position that lie on the image: first <= i < last.
  __device__ i64 first(i64 position) const {
    const i64 start = position * stride - low;
    return start > 0 ? start : 0;
  }
  __device__ i64 last(i64 position) const {
    const i64 end = position * stride - low + window;
    return end < in ? end : in;
  }
  // The positions whose windows have an element: first_position <= position < last_position.
  __device__ i64 first_position(i64 element) const {
    const i64 distance = element + low - window + 1;  // a window that begins here is the first one
    return distance > 0 ? (distance + stride - 1) / stride : 0;
  }
  __device__ i64 last_position(i64 element) const {
    const i64 end = (element + low) / stride + 1;
    return end < out ? end : out;
  }
};

// Of all devices: c channels, images of x and of y. What is not stacked has fewer images, which then repeat.
struct Pool {
  i64 c;
  Slide h, w;

  __device__ i64 x_offset(i64 image, i64 row, i64 column, i64 channel) const {
    return ((image * h.in + row) * w.in + column) * c + channel;
  }
  __device__ i64 y_offset(i64 image, i64 row, i64 column, i64 channel) const {
    return ((image * h.out + row) * w.out + column) * c + channel;
  }
};

// An element of x or of y.
struct Pixel {
  i64 image, row, column, channel;
};
__device__ inline Pixel pixel_of(i64 i, i64 rows, i64 columns, i64 channels) {
  return {i / channels / columns / rows, i / channels / columns % rows, i / channels % columns, i % channels};
}

#define PMAPTRAIN_POOL                                                                                                \
  i64 c, i64 h_in, i64 h_out, i64 h_window, i64 h_stride, i64 h_low, i64 w_in, i64 w_out, i64 w_window, i64 w_stride, \
      i64 w_low
#define PMAPTRAIN_POOL_OF                                                                   \
  Pool {                                                                                    \
    c, {h_in, h_out, h_window, h_stride, h_low}, { w_in, w_out, w_window, w_stride, w_low } \
  }

}  // namespace pmaptrain::ops::device
