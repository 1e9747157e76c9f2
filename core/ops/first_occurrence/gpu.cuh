// Finds equal indices. A thread compares its index with those before it, up to the first that is equal. Neighbouring
// threads read the same indices, so these come from the cache.
#pragma once

#include "core/ops/support/device.cuh"

namespace pmaptrain::ops::device {

// `count` indices, of which each device has `local`.
template <class Index>
__device__ void find_first(Index* first, Index* named, const Index* indices, i64 count, i64 local, i64 rows,
                           i64 index_stride) {
  for_each_index(count, [&](i64 i) {
    const Index* const own = indices + i / local * index_stride;
    const i64 at = i % local;
    const Index index = own[at];
    const bool inside = index >= 0 && static_cast<i64>(index) < rows;
    i64 found = inside ? 0 : local;
    while (inside && own[found] != index) ++found;
    first[i] = static_cast<Index>(found);
    named[i] = found == at ? index : static_cast<Index>(rows);
  });
}

#define PMAPTRAIN_KERNEL(name, Index)                                                                               \
  extern "C" __global__ void name##_##Index(Index* first, Index* named, const Index* indices, i64 count, i64 local, \
                                            i64 rows, i64 index_stride) {                                           \
    find_first(first, named, indices, count, local, rows, index_stride);                                            \
  }
PMAPTRAIN_KERNEL(first_occurrence, i32)
PMAPTRAIN_KERNEL(first_occurrence, i64)
#undef PMAPTRAIN_KERNEL

}  // namespace pmaptrain::ops::device
