// Adds rows by index. Each element of the result has one thread, which adds its updates in order, so there are no
// atomics, and results equal the CPU's. The threads of a block load the indices together and skip those of other rows.
#pragma once

#include "core/ops/support/device.cuh"

namespace pmaptrain::ops::device {

// Each of `count` blocks computes gpu_threads elements. Each device has `rows` rows of `width` elements, and `updates`
// updates.
template <class T>
__device__ void add_updates(T* out, const void* indices, const T* x, i64 wide_indices, i64 count, i64 rows, i64 width,
                            i64 updates, i64 index_stride, i64 update_stride) {
  using C = Computed<T>;
  SHARED(i64, tile, gpu_threads);
  const i64 elements = rows * width, blocks = (elements + gpu_threads - 1) / gpu_threads;
  for_each_block(count, [&](i64 unit) {
    const i64 device = unit / blocks, first = unit % blocks * gpu_threads, element = first + threadIdx.x;
    const i64 end = first + gpu_threads < elements ? first + gpu_threads : elements;
    const i64 first_row = first / width, last_row = (end - 1) / width;
    const i64 row = element < end ? element / width : -1, column = element % width;
    const i64 from = device * update_stride + column;  // an offset, not a pointer: without updates there is no array
    C sum{};
    for (i64 start = 0; start < updates; start += gpu_threads) {
      const i64 mine = start + threadIdx.x;
      const i64 index = mine < updates ? index_at(indices, wide_indices, device * index_stride + mine) : -1;
      tile[threadIdx.x] = index;
      if (!__syncthreads_or(index >= first_row && index <= last_row)) continue;
      for (i64 i = 0; i < gpu_threads && row >= 0; ++i) {
        if (tile[i] == row) sum = wrapping_add(sum, static_cast<C>(x[from + (start + i) * width]));
      }
      __syncthreads();
    }
    if (row >= 0) out[device * elements + element] = static_cast<T>(sum);
  });
}

#define PMAPTRAIN_KERNEL(name, T)                                                                                \
  extern "C" __global__ void name##_##T(T* out, const void* indices, const T* x, i64 wide_indices, i64 count,    \
                                        i64 rows, i64 width, i64 updates, i64 index_stride, i64 update_stride) { \
    add_updates(out, indices, x, wide_indices, count, rows, width, updates, index_stride, update_stride);        \
  }
PMAPTRAIN_NUMBERS(PMAPTRAIN_KERNEL, scatter_add)
#undef PMAPTRAIN_KERNEL

}  // namespace pmaptrain::ops::device
