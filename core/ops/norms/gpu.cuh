// Two norms of each row of a value: a warp for each row.
#pragma once

#include "core/ops/support/warp.cuh"

namespace pmaptrain::ops::device {

template <class T>
__device__ void norms_of_rows(double* squares, T* largest, const T* x, i64 count, i64 rows, i64 row,
                              i64 device_stride) {
  using C = Computed<T>;
  constexpr i64 warps = gpu_threads / warp_threads;
  for_each_block((count + warps - 1) / warps, [&](i64 block) {
    const i64 unit = block * warps + threadIdx.x / warp_threads;
    const bool inside = unit < count;  // all lanes of a warp take part in the exchanges below
    const T* const from = x + (inside ? unit / rows * device_stride + unit % rows * row : 0);
    // Each lane has two sums, of elements 64 apart, so a row of 64 is added in the order of the CPU.
    double sums[2] = {};
    C most{};
    for (i64 i = lane(); inside && i < row; i += 2 * warp_threads) {
      UNROLL for (i64 half = 0; half < 2; ++half) {
        const i64 at = i + half * warp_threads;
        if (at >= row) continue;
        const C value = static_cast<C>(from[at]);
        sums[half] += static_cast<double>(value) * static_cast<double>(value);
        most = larger(most, value > C{0} ? value : C{0} - value);  // the result is 0 for -0 as well
      }
    }
    double sum = sums[0] + sums[1];
    for (int mask = warp_threads / 2; mask > 0; mask /= 2) {
      sum += from_lane(sum, mask);
      most = larger(most, from_lane(most, mask));
    }
    if (!inside || lane() != 0) return;
    squares[unit] = sum;
    largest[unit] = static_cast<T>(most);
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
