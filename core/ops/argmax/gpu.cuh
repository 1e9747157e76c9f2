// The index of the largest element.
#pragma once

#include "core/ops/support/device.cuh"

namespace pmaptrain::ops::device {

// One thread for each of `count` results, of which each device has `local`; reduces `size` elements, `inner` apart.
template <class T>
__device__ void find_largest(i32* out, const T* x, i64 count, i64 local, i64 size, i64 inner, i64 device_stride) {
  for_each_index(count, [&](i64 i) {
    const i64 device = i / local, here = i % local;
    const T* const from = x + device * device_stride + here / inner * size * inner + here % inner;
    i64 best = 0;
    for (i64 k = 1; k < size; ++k) {
      if (is_larger(from[k * inner], from[best * inner])) best = k;
    }
    out[i] = static_cast<i32>(best);
  });
}

#define PMAPTRAIN_KERNEL(name, T)                                                                        \
  extern "C" __global__ void name##_##T(i32* out, const T* x, i64 count, i64 local, i64 size, i64 inner, \
                                        i64 device_stride) {                                             \
    find_largest(out, x, count, local, size, inner, device_stride);                                      \
  }
PMAPTRAIN_NUMBERS(PMAPTRAIN_KERNEL, argmax)
#undef PMAPTRAIN_KERNEL

}  // namespace pmaptrain::ops::device
