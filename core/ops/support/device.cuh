// What kernels share: element types by their names in program text, and the indices that a thread takes up.
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

// The type that elements of type T are computed in.
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

// Calls f(i) for this thread's part of 0 to count - 1.
template <class F>
__device__ void for_each_index(i64 count, F&& f) {
  const i64 step = static_cast<i64>(gridDim.x) * blockDim.x;
  for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) f(i);
}

// As for_each_index, for the blocks: all threads of one call f(i) alike, so that f may have barriers.
template <class F>
__device__ void for_each_block(i64 count, F&& f) {
  for (i64 i = blockIdx.x; i < count; i += gridDim.x) f(i);
}

// The reduction of `width` values, a power of two, becomes values[0]: halves are combined with halves. To be called by
// all threads of a block, which has at least width / 2.
template <unsigned width, class T, class F>
__device__ void reduce_in_halves(T* values, F&& combine) {
  for (unsigned half = width / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) values[threadIdx.x] = combine(values[threadIdx.x], values[threadIdx.x + half]);
  }
  __syncthreads();
}

// Indices of 4 or 8 bytes.
__device__ inline i64 index_at(const void* indices, i64 wide, i64 i) {
  return wide != 0 ? static_cast<const i64*>(indices)[i] : static_cast<const i32*>(indices)[i];
}

}  // namespace pmaptrain::ops::device
