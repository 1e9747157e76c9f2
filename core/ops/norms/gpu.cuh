// Two norms of a value: blocks of threads reduce chunks, then one block per device combines the chunks.
#pragma once

#include "core/ops/support/device.cuh"

namespace pmaptrain::ops::device {

// The sum of the threads' sums, and the largest of their magnitudes; only thread 0 gets them. All threads of the block
// must call this.
template <class C>
__device__ void reduce_norms(double& squares, C& largest) {
  SHARED(double, sums, gpu_threads);
  SHARED(C, magnitudes, gpu_threads);
  sums[threadIdx.x] = squares;
  magnitudes[threadIdx.x] = largest;
  for (unsigned half = gpu_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    sums[threadIdx.x] += sums[threadIdx.x + half];
    magnitudes[threadIdx.x] = larger(magnitudes[threadIdx.x], magnitudes[threadIdx.x + half]);
  }
  __syncthreads();  // until all threads have read values that the next call overwrites
  if (threadIdx.x != 0) return;
  squares = sums[0];
  largest = magnitudes[0];
}

// A block's norms of the elements from `first` up to `end`.
template <class T, class C>
__device__ void norms_of_chunk(double* squares, C* largest, const T* x, i64 first, i64 end) {
  double sum = 0;
  C most{};
  for (i64 i = first + threadIdx.x; i < end; i += gpu_threads) {
    const C value = static_cast<C>(x[i]);
    sum += static_cast<double>(value) * static_cast<double>(value);
    most = larger(most, value > C{0} ? value : C{0} - value);  // the result is 0 for -0 as well
  }
  reduce_norms(sum, most);
  if (threadIdx.x == 0) {
    *squares = sum;
    *largest = most;
  }
}

// A block's combination of the chunks from `first` up to `end`.
template <class T, class C>
__device__ void norms_of_all(double* result, T* largest_result, const double* squares, const C* largest, i64 first,
                             i64 end) {
  double sum = 0;
  C most{};
  for (i64 i = first + threadIdx.x; i < end; i += gpu_threads) {
    sum += squares[i];
    most = larger(most, largest[i]);
  }
  reduce_norms(sum, most);
  if (threadIdx.x == 0) {
    *result = sum;
    *largest_result = static_cast<T>(most);
  }
}

template <class T>
__device__ void norms_of_chunks(double* squares, Computed<T>* largest, const T* x, i64 count, i64 chunks, i64 chunk,
                                i64 elements, i64 device_stride) {
  for_each_block(count, [&](i64 unit) {
    const i64 first = unit % chunks * chunk, end = first + chunk < elements ? first + chunk : elements;
    norms_of_chunk(squares + unit, largest + unit, x + unit / chunks * device_stride, first, end);
  });
}

template <class T>
__device__ void norms_of_devices(double* results, T* largest_results, const double* squares, const Computed<T>* largest,
                                 i64 count, i64 chunks) {
  for_each_block(count, [&](i64 device) {
    norms_of_all(results + device, largest_results + device, squares, largest, device * chunks, (device + 1) * chunks);
  });
}

// The same with tables of bounds: of chunks in x, and of parts in the chunks.
struct Bounds {
  i64 begin, end;
};
__device__ inline Bounds bounds_at(const i64* table, i64 i, i64 size) {
  const i64 begin = table[2 * i], end = table[2 * i + 1];
  return {begin > 0 ? begin : 0, end < size ? end : size};
}

template <class T>
__device__ void norms_of_listed_chunks(double* squares, Computed<T>* largest, const T* x, const i64* table, i64 count,
                                       i64 chunks, i64 elements, i64 device_stride, i64 table_stride) {
  for_each_block(count, [&](i64 unit) {
    const i64 device = unit / chunks;
    const Bounds bounds = bounds_at(table + device * table_stride, unit % chunks, elements);
    norms_of_chunk(squares + unit, largest + unit, x + device * device_stride, bounds.begin, bounds.end);
  });
}

template <class T>
__device__ void norms_of_listed_parts(double* results, T* largest_results, const double* squares,
                                      const Computed<T>* largest, const i64* table, i64 count, i64 parts, i64 chunks,
                                      i64 table_stride) {
  for_each_block(count, [&](i64 unit) {
    const i64 device = unit / parts;
    const Bounds bounds = bounds_at(table + device * table_stride, unit % parts, chunks);
    norms_of_all(results + unit, largest_results + unit, squares + device * chunks, largest + device * chunks,
                 bounds.begin, bounds.end);
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
#define PMAPTRAIN_KERNEL(name, T)                                                                                   \
  extern "C" __global__ void name##_##T(double* squares, Computed<T>* largest, const T* x, const i64* table,        \
                                        i64 count, i64 chunks, i64 elements, i64 device_stride, i64 table_stride) { \
    norms_of_listed_chunks(squares, largest, x, table, count, chunks, elements, device_stride, table_stride);       \
  }
PMAPTRAIN_FLOATING(PMAPTRAIN_KERNEL, norm_chunks)
#undef PMAPTRAIN_KERNEL
#define PMAPTRAIN_KERNEL(name, T)                                                                                 \
  extern "C" __global__ void name##_##T(double* results, T* largest_results, const double* squares,               \
                                        const Computed<T>* largest, const i64* table, i64 count, i64 parts,       \
                                        i64 chunks, i64 table_stride) {                                           \
    norms_of_listed_parts(results, largest_results, squares, largest, table, count, parts, chunks, table_stride); \
  }
PMAPTRAIN_FLOATING(PMAPTRAIN_KERNEL, norms_of_parts)
#undef PMAPTRAIN_KERNEL

}  // namespace pmaptrain::ops::device
