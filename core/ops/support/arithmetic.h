// Arithmetic that is defined for all operands.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/base/bf16.h"

namespace pmaptrain::ops {

// Integers are computed as unsigned integers of at least 32 bits, so that they wrap instead of overflowing.
template <class T>
constexpr auto wrapping(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return x;
  } else if constexpr (sizeof(T) < 4) {
    return static_cast<std::uint32_t>(x);
  } else {
    return static_cast<std::make_unsigned_t<T>>(x);
  }
}

template <class T>
constexpr T wrapping_add(T a, T b) {
  return static_cast<T>(wrapping(a) + wrapping(b));
}

// The maximum; NaN if either is NaN.
template <class T>
constexpr T larger(T a, T b) {
  if constexpr (FloatingElement<T>) {
    const T larger_or_b = a > b ? a : b;
    return a != a ? a : larger_or_b;
  } else {
    return a > b ? a : b;
  }
}

// The minimum; NaN if either is NaN.
template <class T>
constexpr T smaller(T a, T b) {
  if constexpr (FloatingElement<T>) {
    const T smaller_or_b = a < b ? a : b;
    return a != a ? a : smaller_or_b;
  } else {
    return a < b ? a : b;
  }
}

// Whether a > b, where NaN counts as greater than every number.
template <class T>
constexpr bool is_larger(T a, T b) {
  if constexpr (FloatingElement<T>) {
    return (a > b) | ((a != a) & (b == b));
  } else {
    return a > b;
  }
}

}  // namespace pmaptrain::ops
