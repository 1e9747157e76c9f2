// Indices along a dimension.
#pragma once

#include "core/ops/support/device.cuh"

namespace pmaptrain::ops::device {

// `count` elements. Each value is repeated for `inner` elements, and values count from 0 to `size` - 1.
#define PMAPTRAIN_KERNEL(name, T)                                                     \
  extern "C" __global__ void name##_##T(T* out, i64 count, i64 size, i64 inner) {     \
    for_each_index(count, [&](i64 i) { out[i] = static_cast<T>(i / inner % size); }); \
  }
PMAPTRAIN_NUMBERS(PMAPTRAIN_KERNEL, iota)
#undef PMAPTRAIN_KERNEL

}  // namespace pmaptrain::ops::device
