// Maximum over the windows of an image, and its gradient. If a window contains a NaN, its maximum is NaN.
#pragma once

#include "core/ops/max_pool/slide.cuh"

namespace pmaptrain::ops::device {

// The index in x of the first maximum of a window, row by row; of the first NaN if there is one.
template <class T, class I>
__device__ I first_maximum(const Pool<I>& pool, const T* x, I image, I y_row, I y_column, I channel) {
  I best = -1;
  for (I row = pool.h.first(y_row); row < pool.h.last(y_row); ++row) {
    for (I column = pool.w.first(y_column); column < pool.w.last(y_column); ++column) {
      const I at = pool.x_offset(image, row, column, channel);
      if (best < 0 || is_larger(x[at], x[best])) best = at;
    }
  }
  return best;
}

template <class T, class I>
__device__ void largest_of_windows(T* y, const T* x, i64 count, i64 x_images, const Pool<I>& pool) {
  for_each_index(count, [&](i64 i) {
    const Pixel<I> at = pixel_of(static_cast<I>(i), pool.h.out, pool.w.out, pool.c);
    const I image = repeated(at.image, static_cast<I>(x_images));
    y[i] = x[first_maximum(pool, x, image, at.row, at.column, at.channel)];
  });
}

// An element of x gets the cotangents of the windows whose first maximum it is, in the order of the windows.
template <class T, class I>
__device__ void collect_cotangents(T* dx, const T* x, const T* dy, i64 count, i64 x_images, i64 dy_images, i64 relu,
                                   const Pool<I>& pool) {
  using C = Computed<T>;
  for_each_index(count, [&](i64 i) {
    const Pixel<I> at = pixel_of(static_cast<I>(i), pool.h.in, pool.w.in, pool.c);
    const I image = repeated(at.image, static_cast<I>(x_images)),
            dy_image = repeated(at.image, static_cast<I>(dy_images));
    const I here = pool.x_offset(image, at.row, at.column, at.channel);
    C sum{};
    const bool passes = relu == 0 || static_cast<C>(x[here]) > C{0};
    for (I row = pool.h.first_position(at.row); passes && row < pool.h.last_position(at.row); ++row) {
      for (I column = pool.w.first_position(at.column); column < pool.w.last_position(at.column); ++column) {
        if (first_maximum(pool, x, image, row, column, at.channel) != here) continue;
        sum += static_cast<C>(dy[pool.y_offset(dy_image, row, column, at.channel)]);
      }
    }
    dx[i] = static_cast<T>(sum);
  });
}

#define PMAPTRAIN_KERNEL(name, T)                                                                             \
  extern "C" __global__ void name##_##T(T* y, const T* x, i64 count, i64 x_images, PMAPTRAIN_POOL) {          \
    with_pool(PMAPTRAIN_POOL_OF, [&](const auto& pool) { largest_of_windows(y, x, count, x_images, pool); }); \
  }
PMAPTRAIN_FLOATING(PMAPTRAIN_KERNEL, max_pool)
#undef PMAPTRAIN_KERNEL
#define PMAPTRAIN_KERNEL(name, T)                                                                                \
  extern "C" __global__ void name##_##T(T* dx, const T* x, const T* dy, i64 count, i64 x_images, i64 dy_images,  \
                                        i64 relu, PMAPTRAIN_POOL) {                                              \
    with_pool(PMAPTRAIN_POOL_OF,                                                                                 \
              [&](const auto& pool) { collect_cotangents(dx, x, dy, count, x_images, dy_images, relu, pool); }); \
  }
PMAPTRAIN_FLOATING(PMAPTRAIN_KERNEL, max_pool_grad)
#undef PMAPTRAIN_KERNEL

}  // namespace pmaptrain::ops::device
