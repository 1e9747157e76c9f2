// The largest elements of each row, in order: a block repeatedly searches for the best element after the previous one.
#pragma once

#include "core/ops/support/device.cuh"

namespace pmaptrain::ops::device {

// The order of elements in a row by their indices; index -1 is no element and comes last.
template <class T>
struct Falling {
  const T* x;

  __device__ bool operator()(i32 a, i32 b) const {
    if (a < 0 || b < 0) return b < 0 && a >= 0;
    return is_larger(x[a], x[b]) || (!is_larger(x[b], x[a]) && a < b);
  }
};

// For `count` rows of n elements; each device has `local` rows.
template <class T>
__device__ void choose_largest(T* values, i32* indices, const T* x, i64 count, i64 local, i64 n, i64 k,
                               i64 device_stride) {
  SHARED(i32, best, gpu_threads);
  for_each_block(count, [&](i64 row) {
    const T* const from = x + row / local * device_stride + row % local * n;
    const Falling<T> before{from};
    i32 last = -1;
    for (i64 chosen = 0; chosen < k; ++chosen) {
      i32 mine = -1;
      for (i64 i = threadIdx.x; i < n; i += gpu_threads) {
        const i32 place = static_cast<i32>(i);
        if ((chosen == 0 || before(last, place)) && before(place, mine)) mine = place;
      }
      best[threadIdx.x] = mine;
      reduce_in_halves<gpu_threads>(best, [&](i32 a, i32 b) { return before(b, a) ? b : a; });
      last = best[0];
      __syncthreads();
      if (threadIdx.x == 0) {
        values[row * k + chosen] = from[last];
        indices[row * k + chosen] = last;
      }
    }
  });
}

#define PMAPTRAIN_KERNEL(name, T)                                                                                \
  extern "C" __global__ void name##_##T(T* values, i32* indices, const T* x, i64 count, i64 local, i64 n, i64 k, \
                                        i64 device_stride) {                                                     \
    choose_largest(values, indices, x, count, local, n, k, device_stride);                                       \
  }
PMAPTRAIN_NUMBERS(PMAPTRAIN_KERNEL, top_k)
#undef PMAPTRAIN_KERNEL

}  // namespace pmaptrain::ops::device
