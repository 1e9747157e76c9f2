// One-hot encoding of indices.
#pragma once

#include "core/ops/support/device.cuh"

namespace pmaptrain::ops::device {

// `count` elements in rows of `depth`; each device has `local` elements.
#define PMAPTRAIN_KERNEL(name, T)                                                                            \
  extern "C" __global__ void name##_##T(T* out, const void* indices, i64 wide_indices, i64 count, i64 depth, \
                                        i64 local, i64 index_stride) {                                       \
    for_each_index(count, [&](i64 i) {                                                                       \
      const i64 row = i / depth;                                                                             \
      const i64 index = index_at(indices, wide_indices, row / local * index_stride + row % local);           \
      out[i] = index == i % depth ? T{1} : T{0};                                                             \
    });                                                                                                      \
  }
PMAPTRAIN_NUMBERS(PMAPTRAIN_KERNEL, one_hot)
#undef PMAPTRAIN_KERNEL

}  // namespace pmaptrain::ops::device
