// Running sums, with one thread for each line.
#pragma once

#include "core/ops/support/device.cuh"

namespace pmaptrain::ops::device {

// `count` lines of `size` elements that are `inner` apart; each device has `local` lines.
template <class T>
__device__ void add_along(T* y, const T* x, i64 count, i64 local, i64 size, i64 inner, i64 reverse, i64 device_stride) {
  using C = Computed<T>;
  for_each_index(count, [&](i64 line) {
    const i64 device = line / local, here = line % local;
    const i64 first = here / inner * size * inner + here % inner;
    const T* const from = x + device * device_stride + first;
    T* const to = y + device * local * size + first;
    C sum{};
    for (i64 k = 0; k < size; ++k) {
      const i64 at = (reverse != 0 ? size - 1 - k : k) * inner;
      const C value = static_cast<C>(from[at]);
      sum = k == 0 ? value : wrapping_add(sum, value);
      to[at] = static_cast<T>(sum);
    }
  });
}

#define PMAPTRAIN_KERNEL(name, T)                                                                                 \
  extern "C" __global__ void name##_##T(T* y, const T* x, i64 count, i64 local, i64 size, i64 inner, i64 reverse, \
                                        i64 device_stride) {                                                      \
    add_along(y, x, count, local, size, inner, reverse, device_stride);                                           \
  }
PMAPTRAIN_NUMBERS(PMAPTRAIN_KERNEL, cumsum)
#undef PMAPTRAIN_KERNEL

}  // namespace pmaptrain::ops::device
