// Sums of ranges of elements: a block of threads for each.
#pragma once

#include "core/ops/support/device.cuh"

namespace pmaptrain::ops::device {

template <class T>
__device__ void segment_sums(T* results, const T* x, const i64* segments, i64 count, i64 segments_of_device,
                             i64 elements, i64 device_stride, i64 segments_stride) {
  using C = Computed<T>;
  SHARED(C, sums, gpu_threads);
  for_each_block(count, [&](i64 unit) {
    const i64 device = unit / segments_of_device;
    const i64* const bounds = segments + device * segments_stride + 2 * (unit % segments_of_device);
    const i64 begin = bounds[0] > 0 ? bounds[0] : 0, end = bounds[1] < elements ? bounds[1] : elements;
    C sum{};
    for (i64 i = begin + threadIdx.x; i < end; i += gpu_threads) sum += static_cast<C>(x[device * device_stride + i]);
    sums[threadIdx.x] = sum;
    for (unsigned half = gpu_threads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) results[unit] = static_cast<T>(sums[0]);
    __syncthreads();  // until thread 0 has read what the next segment overwrites
  });
}

#define PMAPTRAIN_KERNEL(name, T)                                                                              \
  extern "C" __global__ void name##_##T(T* results, const T* x, const i64* segments, i64 count, i64 of_device, \
                                        i64 elements, i64 device_stride, i64 segments_stride) {                \
    segment_sums(results, x, segments, count, of_device, elements, device_stride, segments_stride);            \
  }
PMAPTRAIN_FLOATING(PMAPTRAIN_KERNEL, segment_sum)
#undef PMAPTRAIN_KERNEL

}  // namespace pmaptrain::ops::device
