// Mean over the windows of an image, and its gradient.
#pragma once

#include "core/ops/max_pool/slide.cuh"

namespace pmaptrain::ops::device {

// The divisor of a window's sum.
template <class I>
__device__ I divisor_of(const Pool<I>& pool, I row, I column, i64 count_include_pad) {
  if (count_include_pad != 0) return pool.h.window * pool.w.window;
  return (pool.h.last(row) - pool.h.first(row)) * (pool.w.last(column) - pool.w.first(column));
}

template <class T, class I>
__device__ void mean_of_windows(T* y, const T* x, i64 count, i64 x_images, i64 count_include_pad, const Pool<I>& pool) {
  using C = Computed<T>;
  for_each_index(count, [&](i64 i) {
    const Pixel<I> at = pixel_of(static_cast<I>(i), pool.h.out, pool.w.out, pool.c);
    const I image = repeated(at.image, static_cast<I>(x_images));
    C sum{};
    for (I row = pool.h.first(at.row); row < pool.h.last(at.row); ++row) {
      for (I column = pool.w.first(at.column); column < pool.w.last(at.column); ++column) {
        sum += static_cast<C>(x[pool.x_offset(image, row, column, at.channel)]);
      }
    }
    y[i] = static_cast<T>(sum / static_cast<C>(divisor_of(pool, at.row, at.column, count_include_pad)));
  });
}

// An element of x gets its share of the cotangents of all windows that contain it, in the order of the windows.
template <class T, class I>
__device__ void divide_cotangents(T* dx, const T* dy, i64 count, i64 dy_images, i64 count_include_pad,
                                  const Pool<I>& pool) {
  using C = Computed<T>;
  for_each_index(count, [&](i64 i) {
    const Pixel<I> at = pixel_of(static_cast<I>(i), pool.h.in, pool.w.in, pool.c);
    const I image = repeated(at.image, static_cast<I>(dy_images));
    C sum{};
    for (I row = pool.h.first_position(at.row); row < pool.h.last_position(at.row); ++row) {
      for (I column = pool.w.first_position(at.column); column < pool.w.last_position(at.column); ++column) {
        const C cotangent = static_cast<C>(dy[pool.y_offset(image, row, column, at.channel)]);
        sum += cotangent / static_cast<C>(divisor_of(pool, row, column, count_include_pad));
      }
    }
    dx[i] = static_cast<T>(sum);
  });
}

#define PMAPTRAIN_KERNEL(name, T)                                                                          \
  extern "C" __global__ void name##_##T(T* y, const T* x, i64 count, i64 x_images, i64 count_include_pad,  \
                                        PMAPTRAIN_POOL) {                                                  \
    with_pool(PMAPTRAIN_POOL_OF,                                                                           \
              [&](const auto& pool) { mean_of_windows(y, x, count, x_images, count_include_pad, pool); }); \
  }
PMAPTRAIN_FLOATING(PMAPTRAIN_KERNEL, avg_pool)
#undef PMAPTRAIN_KERNEL
#define PMAPTRAIN_KERNEL(name, T)                                                                               \
  extern "C" __global__ void name##_##T(T* dx, const T* dy, i64 count, i64 dy_images, i64 count_include_pad,    \
                                        PMAPTRAIN_POOL) {                                                       \
    with_pool(PMAPTRAIN_POOL_OF,                                                                                \
              [&](const auto& pool) { divide_cotangents(dx, dy, count, dy_images, count_include_pad, pool); }); \
  }
PMAPTRAIN_FLOATING(PMAPTRAIN_KERNEL, avg_pool_grad)
#undef PMAPTRAIN_KERNEL

}  // namespace pmaptrain::ops::device
