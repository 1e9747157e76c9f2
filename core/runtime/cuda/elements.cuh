// The element types of arrays (DType) as CUDA types, and functions that are compiled for each of them.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>
#include <type_traits>

#include "core/base/dtype.h"

namespace pmaptrain::cuda {

// The type in which elements of type T are summed. Signed integers are summed as unsigned ones, so that overflow wraps.
template <class T>
struct SumType {
  using type = T;
};
template <>
struct SumType<__nv_bfloat16> {
  using type = float;
};
template <>
struct SumType<std::int32_t> {
  using type = std::uint32_t;
};
template <>
struct SumType<std::int64_t> {
  using type = std::uint64_t;
};

template <class To, class From>
__device__ To converted(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<From, __nv_bfloat16>) {
    return static_cast<To>(__bfloat162float(value));
  } else if constexpr (std::is_same_v<To, __nv_bfloat16>) {
    return __float2bfloat16_rn(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

// Calls f.operator()<T>(), where T is the CUDA type of elements of type `dtype`.
template <class F>
void dispatch_floating_elements(DType dtype, F&& f) {
  switch (dtype) {
    case DType::bf16: return f.template operator()<__nv_bfloat16>();
    case DType::f64: return f.template operator()<double>();
    default: return f.template operator()<float>();
  }
}
template <class F>
void dispatch_elements(DType dtype, F&& f) {
  switch (dtype) {
    case DType::i32: return f.template operator()<std::int32_t>();
    case DType::i64: return f.template operator()<std::int64_t>();
    case DType::u32: return f.template operator()<std::uint32_t>();
    case DType::u8: return f.template operator()<std::uint8_t>();
    default: return dispatch_floating_elements(dtype, f);
  }
}

inline constexpr unsigned block_threads = 256;

// The number of thread blocks for a grid-stride loop over `elements`. It depends only on that number, not on the GPU.
inline unsigned blocks_for(std::int64_t elements) {
  const std::int64_t blocks = (elements + block_threads - 1) / block_threads;
  return static_cast<unsigned>(blocks < 4096 ? blocks : 4096);
}

}  // namespace pmaptrain::cuda
