// Selects rows of a table by index.
#pragma once

#include "core/ops/support/device.cuh"

namespace pmaptrain::ops::device {

// `count` elements in rows of `width`. Each device has `local` rows of results, and a table of `rows` rows.
template <class Word>
__device__ void take_rows(Word* out, const Word* table, const void* indices, i64 wide_indices, i64 count, i64 width,
                          i64 local, i64 rows, i64 table_stride, i64 index_stride) {
  for_each_index(count, [&](i64 i) {
    const i64 row = i / width, device = row / local;
    const i64 index = index_at(indices, wide_indices, device * index_stride + row % local);
    const bool inside = index >= 0 && index < rows;
    out[i] = inside ? table[device * table_stride + index * width + i % width] : Word{0};
  });
}

#define PMAPTRAIN_KERNEL(name, Word)                                                                            \
  extern "C" __global__ void name##_##Word(Word* out, const Word* table, const void* indices, i64 wide_indices, \
                                           i64 count, i64 width, i64 local, i64 rows, i64 table_stride,         \
                                           i64 index_stride) {                                                  \
    take_rows(out, table, indices, wide_indices, count, width, local, rows, table_stride, index_stride);        \
  }
PMAPTRAIN_WORDS(PMAPTRAIN_KERNEL, gather)
#undef PMAPTRAIN_KERNEL

}  // namespace pmaptrain::ops::device
