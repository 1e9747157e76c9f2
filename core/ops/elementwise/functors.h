// Elementwise ops on one element: the one definition behind the kernels of the single ops and of fused chains, so that
// both give the same bits.
#pragma once

#include <cmath>
#include <type_traits>

#include "core/ops/support/arithmetic.h"

namespace pmaptrain::ops {

struct AddOf {
  template <class T>
  T operator()(T a, T b) const {
    return wrapping_add(a, b);
  }
};

struct SubOf {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(wrapping(a) - wrapping(b));
  }
};

struct MulOf {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(wrapping(a) * wrapping(b));
  }
};

struct DivOf {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return a / b;
    } else {
      if (b == T{0}) return T{0};
      if constexpr (std::is_signed_v<T>) {
        // The smallest value divided by -1 does not fit: it wraps, as its negation does.
        if (b == T{-1}) return SubOf{}(T{0}, a);
      }
      return static_cast<T>(a / b);
    }
  }
};

struct MaxOf {
  template <class T>
  T operator()(T a, T b) const {
    return larger(a, b);
  }
};

struct NegOf {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) {
      return -x;
    } else {
      return static_cast<T>(std::make_unsigned_t<T>{0} - static_cast<std::make_unsigned_t<T>>(x));
    }
  }
};

struct SqrtOf {
  template <class T>
  T operator()(T x) const {
    return std::sqrt(x);
  }
};

// In this order a NaN is kept, and the machine's maximum does it in one instruction.
struct ReluOf {
  template <class T>
  T operator()(T x) const {
    return T{0} > x ? T{0} : x;
  }
};

// Infinity less itself is NaN, and NaN stays NaN.
struct IsFiniteOf {
  template <class T>
  bool operator()(T x) const {
    return x - x == T{0};
  }
};

}  // namespace pmaptrain::ops
