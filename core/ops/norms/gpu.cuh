// Two norms of each row of a value: a block of threads for each row.
#pragma once

#include "core/ops/support/device.cuh"

namespace pmaptrain::ops::device {

template <class T>
__device__ void norms_of_rows(double* squares, T* largest, const T* x, i64 count, i64 rows, i64 row,
                              i64 device_stride) {
  using C = Computed<T>;
  SHARED(double, sums, norm_threads);
  SHARED(C, magnitudes, norm_threads);
  for_each_block(count, [&](i64 unit) {
    const T* const from = x + unit / rows * device_stride + unit % rows * row;
    double sum = 0;
    C most{};
    for (i64 i = threadIdx.x; i < row; i += norm_threads) {
      const C value = static_cast<C>(from[i]);
      sum += static_cast<double>(value) * static_cast<double>(value);
      most = larger(most, value > C{0} ? value : C{0} - value);  // the result is 0 for -0 as well
    }
    sums[threadIdx.x] = sum;
    magnitudes[threadIdx.x] = most;
    for (unsigned half = norm_threads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x >= half) continue;
      sums[threadIdx.x] += sums[threadIdx.x + half];
      magnitudes[threadIdx.x] = larger(magnitudes[threadIdx.x], magnitudes[threadIdx.x + half]);
    }
    if (threadIdx.x == 0) {
      squares[unit] = sums[0];
      largest[unit] = static_cast<T>(magnitudes[0]);
    }
    __syncthreads();  // until thread 0 has read what the next row overwrites
  });
}

#define PMAPTRAIN_KERNEL(name, T)                                                                              \
  extern "C" __global__ void name##_##T(double* squares, T* largest, const T* x, i64 count, i64 rows, i64 row, \
                                        i64 device_stride) {                                                   \
    norms_of_rows(squares, largest, x, count, rows, row, device_stride);                                       \
  }
PMAPTRAIN_FLOATING(PMAPTRAIN_KERNEL, norms)
#undef PMAPTRAIN_KERNEL

}  // namespace pmaptrain::ops::device
