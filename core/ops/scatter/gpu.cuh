// Replaces rows by index.
#pragma once

#include "core/ops/support/device.cuh"

namespace pmaptrain::ops::device {

// Each device has a table of `elements` elements; `count` are those of all devices.
template <class Word>
__device__ void copy_tables(Word* out, const Word* table, i64 count, i64 elements, i64 table_stride) {
  if (out == table) return;
  for_each_index(count, [&](i64 i) { out[i] = table[i / elements * table_stride + i % elements]; });
}

// `count` elements in rows of `width`. Each device has `local` new rows, and a table of `rows` rows.
template <class Word>
__device__ void put_rows(Word* out, const void* indices, const Word* x, i64 wide_indices, i64 count, i64 width,
                         i64 local, i64 rows, i64 index_stride, i64 row_stride) {
  for_each_index(count, [&](i64 i) {
    const i64 row = i / width, device = row / local, at = row % local;
    const i64 index = index_at(indices, wide_indices, device * index_stride + at);
    if (index < 0 || index >= rows) return;
    out[(device * rows + index) * width + i % width] = x[device * row_stride + at * width + i % width];
  });
}

#define PMAPTRAIN_KERNEL(name, Word)                                                                                   \
  extern "C" __global__ void name##_base_##Word(Word* out, const Word* table, i64 count, i64 elements,                 \
                                                i64 table_stride) {                                                    \
    copy_tables(out, table, count, elements, table_stride);                                                            \
  }                                                                                                                    \
  extern "C" __global__ void name##_##Word(Word* out, const void* indices, const Word* x, i64 wide_indices, i64 count, \
                                           i64 width, i64 local, i64 rows, i64 index_stride, i64 row_stride) {         \
    put_rows(out, indices, x, wide_indices, count, width, local, rows, index_stride, row_stride);                      \
  }
PMAPTRAIN_WORDS(PMAPTRAIN_KERNEL, scatter)
#undef PMAPTRAIN_KERNEL

}  // namespace pmaptrain::ops::device
