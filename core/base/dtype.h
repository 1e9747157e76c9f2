// Element types of device values and their names in program text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "core/base/bf16.h"

namespace pmaptrain {

enum class DType : std::uint8_t { bf16, f32, f64, i32, i64, u8, u32, boolean };

// Bytes of one element. A boolean is one byte, 0 or 1.
std::size_t size_of(DType dtype);

// "bf16", "f32", "f64", "i32", "i64", "u8", "u32", "bool".
std::string_view to_string(DType dtype);
std::optional<DType> parse_dtype(std::string_view text);

// Only floating values have cotangents.
bool is_floating(DType dtype);

// The C++ type of a DType, for kernels: dispatch(dtype, [&]<class T>() { ... }).
template <class F>
decltype(auto) dispatch(DType dtype, F&& f) {
  switch (dtype) {
    case DType::bf16: return f.template operator()<bf16>();
    case DType::f32: return f.template operator()<float>();
    case DType::f64: return f.template operator()<double>();
    case DType::i32: return f.template operator()<std::int32_t>();
    case DType::i64: return f.template operator()<std::int64_t>();
    case DType::u8: return f.template operator()<std::uint8_t>();
    case DType::u32: return f.template operator()<std::uint32_t>();
    case DType::boolean: break;
  }
  return f.template operator()<bool>();
}

// Like dispatch, for the types in which sums and products are computed: all but bf16, which is computed in f32, and
// bool.
template <class F>
decltype(auto) dispatch_arithmetic(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32: return f.template operator()<float>();
    case DType::f64: return f.template operator()<double>();
    case DType::i32: return f.template operator()<std::int32_t>();
    case DType::i64: return f.template operator()<std::int64_t>();
    case DType::u8: return f.template operator()<std::uint8_t>();
    case DType::u32: return f.template operator()<std::uint32_t>();
    case DType::bf16:
    case DType::boolean: break;
  }
  std::abort();
}

// Like dispatch, for the floating-point types in which sums and products are computed. Precondition: `dtype` is f32 or
// f64.
template <class F>
decltype(auto) dispatch_floating_arithmetic(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32: return f.template operator()<float>();
    case DType::f64: return f.template operator()<double>();
    case DType::bf16:
    case DType::i32:
    case DType::i64:
    case DType::u8:
    case DType::u32:
    case DType::boolean: break;
  }
  std::abort();
}

// Like dispatch, for the floating-point types. Precondition: is_floating(dtype).
template <class F>
decltype(auto) dispatch_floating(DType dtype, F&& f) {
  if (dtype == DType::bf16) return f.template operator()<bf16>();
  return dispatch_floating_arithmetic(dtype, f);
}

}  // namespace pmaptrain
