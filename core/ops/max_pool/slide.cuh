// Sliding windows in GPU kernels, like core/ops/conv/window.h without dilation. `I` is the type of indices: a 64-bit
// division takes several times as long as a 32-bit one, and each element needs several.
#pragma once

#include "core/ops/support/device.cuh"

namespace pmaptrain::ops::device {

template <class I>
struct Slide {
  I in, out, window, stride, low;

  // The elements of the window at a position that are on the image: first <= i < last.
  __device__ I first(I position) const {
    const I start = position * stride - low;
    return start > 0 ? start : 0;
  }
  __device__ I last(I position) const {
    const I end = position * stride - low + window;
    return end < in ? end : in;
  }
  // The positions whose windows contain an element: first_position <= position < last_position.
  __device__ I first_position(I element) const {
    // `distance` is 0 if the first window to contain the element begins at `low`
    const I distance = element + low - window + 1;
    return distance > 0 ? (distance + stride - 1) / stride : 0;
  }
  __device__ I last_position(I element) const {
    const I end = (element + low) / stride + 1;
    return end < out ? end : out;
  }
};

// The geometry of all devices: c channels, images of x and of y. An unstacked operand has fewer images, which repeat.
template <class I>
struct Pool {
  I c;
  Slide<I> h, w;

  __device__ I x_offset(I image, I row, I column, I channel) const {
    return ((image * h.in + row) * w.in + column) * c + channel;
  }
  __device__ I y_offset(I image, I row, I column, I channel) const {
    return ((image * h.out + row) * w.out + column) * c + channel;
  }
};

// The coordinates of an element of x or of y.
template <class I>
struct Pixel {
  I image, row, column, channel;
};
template <class I>
__device__ Pixel<I> pixel_of(I i, I rows, I columns, I channels) {
  const I pixel = i / channels, line = pixel / columns, image = line / rows;
  return {image, line - image * rows, pixel - line * columns, i - pixel * channels};
}

// The images of an unstacked operand repeat.
template <class I>
__device__ I repeated(I image, I images) {
  return image < images ? image : image % images;
}

#define PMAPTRAIN_POOL                                                                                                \
  i64 c, i64 h_in, i64 h_out, i64 h_window, i64 h_stride, i64 h_low, i64 w_in, i64 w_out, i64 w_window, i64 w_stride, \
      i64 w_low, i64 narrow
#define PMAPTRAIN_POOL_OF c, h_in, h_out, h_window, h_stride, h_low, w_in, w_out, w_window, w_stride, w_low, narrow

// Calls f(pool) with a sufficiently wide index type.
template <class F>
__device__ void with_pool(PMAPTRAIN_POOL, F&& f) {
  const auto pool = [&]<class I>(I) {
    const auto as = [](i64 value) { return static_cast<I>(value); };
    return Pool<I>{as(c),
                   {as(h_in), as(h_out), as(h_window), as(h_stride), as(h_low)},
                   {as(w_in), as(w_out), as(w_window), as(w_stride), as(w_low)}};
  };
  if (narrow != 0) {
    f(pool(i32{}));
  } else {
    f(pool(i64{}));
  }
}

}  // namespace pmaptrain::ops::device
