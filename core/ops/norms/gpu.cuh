// Two norms of a value: of chunks by blocks, and then of the chunks' by one block for each device.
#pragma once

#include "core/ops/support/device.cuh"

namespace pmaptrain::ops::device {

// The sum of the threads' sums, and the largest of their magnitudes, for thread 0. All threads of the block call it.
template <class C>
__device__ void fold_norms(double& squares, C& largest) {
  SHARED(double, sums, gpu_threads);
  SHARED(C, magnitudes, gpu_threads);
  sums[threadIdx.x] = squares;
  magnitudes[threadIdx.x] = largest;
  fold_in_halves<gpu_threads>(sums, [](double a, double b) { return a + b; });
  fold_in_halves<gpu_threads>(magnitudes, [](C a, C b) { return larger(a, b); });
  if (threadIdx.x != 0) return;
  squares = sums[0];
  largest = magnitudes[0];
}

template <class T>
__device__ void norms_of_chunks(double* squares, Computed<T>* largest, const T* x, i64 count, i64 chunks, i64 chunk,
                                i64 elements, i64 device_stride) {
  using C = Computed<T>;
  for_each_block(count, [&](i64 unit) {
    const i64 first = unit % chunks * chunk, end = first + chunk < elements ? first + chunk : elements;
    const T* const from = x + unit / chunks * device_stride;
    double sum = 0;
    C most{};
    for (i64 i = first + threadIdx.x; i < end; i += gpu_threads) {
      const C value = static_cast<C>(from[i]);
      sum += static_cast<double>(value) * static_cast<double>(value);
      most = larger(most, value > C{0} ? value : C{0} - value);  // of -0, too, it is 0
    }
    fold_norms(sum, most);
    if (threadIdx.x == 0) {
      squares[unit] = sum;
      largest[unit] = most;
    }
  });
}

template <class T>
__device__ void norms_of_devices(double* results, T* largest_results, const double* squares, const Computed<T>* largest,
                                 i64 count, i64 chunks) {
  using C = Computed<T>;
  for_each_block(count, [&](i64 device) {
    double sum = 0;
    C most{};
    for (i64 i = threadIdx.x; i < chunks; i += gpu_threads) {
      sum += squares[device * chunks + i];
      most = larger(most, largest[device * chunks + i]);
    }
    fold_norms(sum, most);
    if (threadIdx.x == 0) {
      results[device] = sum;
      largest_results[device] = static_cast<T>(most);
    }
  });
}

#define PMAPTRAIN_KERNEL(name, T)                                                                                 \
  extern "C" __global__ void name##_##T(double* squares, Computed<T>* largest, const T* x, i64 count, i64 chunks, \
                                        i64 chunk, i64 elements, i64 device_stride) {                             \
    norms_of_chunks(squares, largest, x, count, chunks, chunk, elements, device_stride);                          \
  }
PMAPTRAIN_FLOATING(PMAPTRAIN_KERNEL, norm_parts)
#undef PMAPTRAIN_KERNEL
#define PMAPTRAIN_KERNEL(name, T)                                                                   \
  extern "C" __global__ void name##_##T(double* results, T* largest_results, const double* squares, \
                                        const Computed<T>* largest, i64 count, i64 chunks) {        \
    norms_of_devices(results, largest_results, squares, largest, count, chunks);                    \
  }
PMAPTRAIN_FLOATING(PMAPTRAIN_KERNEL, norms)
#undef PMAPTRAIN_KERNEL

}  // namespace pmaptrain::ops::device
