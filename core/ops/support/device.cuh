// Common code of the GPU kernels: element types by their names in program text, and loops over indices.
#pragma once

#include <cstdint>

#include "core/base/bf16.h"
#include "core/kernel/simt.h"
#include "core/ops/gpu_kernels.h"
#include "core/ops/support/arithmetic.h"

namespace pmaptrain::ops::device {

using f32 = float;
using f64 = double;
using i32 = std::int32_t;
using i64 = std::int64_t;
using u8 = std::uint8_t;
using u32 = std::uint32_t;
using b1 = std::uint8_t;
using b2 = std::uint16_t;
using b4 = std::uint32_t;
using b8 = std::uint64_t;

// The type in which elements of type T are computed.
template <class T>
struct ComputedIn {
  using type = T;
};
template <>
struct ComputedIn<bf16> {
  using type = float;
};
template <class T>
using Computed = typename ComputedIn<T>::type;

// Calls f(i) for this thread's share of 0 to count - 1.
template <class F>
__device__ void for_each_index(i64 count, F&& f) {
  const i64 step = static_cast<i64>(gridDim.x) * blockDim.x;
  for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) f(i);
}

// Like for_each_index, but by block: all threads of a block call f(i) with the same i, so f may contain barriers.
template <class F>
__device__ void for_each_block(i64 count, F&& f) {
  for (i64 i = blockIdx.x; i < count; i += gridDim.x) f(i);
}

// Reduces `width` values, a power of two, into values[0], by combining halves. All threads of a block must call this,
// and the block must have at least width / 2 threads.
template <unsigned width, class T, class F>
__device__ void reduce_in_halves(T* values, F&& combine) {
  for (unsigned half = width / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) values[threadIdx.x] = combine(values[threadIdx.x], values[threadIdx.x + half]);
  }
  __syncthreads();
}

// Reads an index of 4 or 8 bytes.
__device__ inline i64 index_at(const void* indices, i64 wide, i64 i) {
  return wide != 0 ? static_cast<const i64*>(indices)[i] : static_cast<const i32*>(indices)[i];
}

}  // namespace pmaptrain::ops::device
