// Elementwise ops on one element. Single ops and fused chains use the same functors, so their results are equal bit for
// bit. The argument types of a functor determine the element types that it supports, the number of its operands and
// whether its result is boolean. InF32 computes bf16 elements in f32.
#pragma once

#include <cmath>
#include <concepts>
#include <type_traits>

#include "core/base/bf16.h"
#include "core/ops/support/arithmetic.h"

namespace pmaptrain::ops {

template <class T>
concept Number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;
template <class T>
concept Signed = Number<T> && std::is_signed_v<T>;
template <class T>
concept Floating = std::is_floating_point_v<T>;

struct AddOf {
  template <Number T>
  T operator()(T a, T b) const {
    return wrapping_add(a, b);
  }
};

struct SubOf {
  template <Number T>
  T operator()(T a, T b) const {
    return static_cast<T>(wrapping(a) - wrapping(b));
  }
};

struct MulOf {
  template <Number T>
  T operator()(T a, T b) const {
    return static_cast<T>(wrapping(a) * wrapping(b));
  }
};

struct DivOf {
  template <Number T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return a / b;
    } else {
      if (b == T{0}) return T{0};
      if constexpr (std::is_signed_v<T>) {
        // The smallest value divided by -1 does not fit. It wraps, like its negation.
        if (b == T{-1}) return SubOf{}(T{0}, a);
      }
      return static_cast<T>(a / b);
    }
  }
};

struct RemOf {
  template <Number T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return std::fmod(a, b);
    } else {
      if (b == T{0}) return a;
      if constexpr (std::is_signed_v<T>) {
        if (b == T{-1}) return T{0};  // the quotient of the smallest value would not fit
      }
      return static_cast<T>(a % b);
    }
  }
};

struct PowOf {
  template <Floating T>
  T operator()(T x, T y) const {
    return std::pow(x, y);
  }
};

struct MaxOf {
  template <Number T>
  T operator()(T a, T b) const {
    return larger(a, b);
  }
};

struct MinOf {
  template <Number T>
  T operator()(T a, T b) const {
    return smaller(a, b);
  }
};

// If any of the three is NaN, the result is NaN.
struct ClampOf {
  template <Number T>
  T operator()(T low, T x, T high) const {
    return smaller(larger(x, low), high);
  }
};

struct NegOf {
  template <Signed T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) {
      return -x;
    } else {
      return static_cast<T>(std::make_unsigned_t<T>{0} - static_cast<std::make_unsigned_t<T>>(x));
    }
  }
};

struct AbsOf {
  template <Signed T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) {
      return std::abs(x);
    } else {
      return x < T{0} ? NegOf{}(x) : x;
    }
  }
};

// A value that is neither above nor below 0 is returned as it is: 0, -0 and NaN.
struct SignOf {
  template <Signed T>
  T operator()(T x) const {
    const T below = x < T{0} ? T{-1} : x;
    return x > T{0} ? T{1} : below;
  }
};

struct FloorOf {
  template <Floating T>
  T operator()(T x) const {
    return std::floor(x);
  }
};

struct ExpOf {
  template <Floating T>
  T operator()(T x) const {
    return std::exp(x);
  }
};

struct Expm1Of {
  template <Floating T>
  T operator()(T x) const {
    return std::expm1(x);
  }
};

struct LogOf {
  template <Floating T>
  T operator()(T x) const {
    return std::log(x);
  }
};

struct Log1pOf {
  template <Floating T>
  T operator()(T x) const {
    return std::log1p(x);
  }
};

struct SinOf {
  template <Floating T>
  T operator()(T x) const {
    return std::sin(x);
  }
};

struct CosOf {
  template <Floating T>
  T operator()(T x) const {
    return std::cos(x);
  }
};

struct TanhOf {
  template <Floating T>
  T operator()(T x) const {
    return std::tanh(x);
  }
};

struct ErfOf {
  template <Floating T>
  T operator()(T x) const {
    return std::erf(x);
  }
};

struct SqrtOf {
  template <Floating T>
  T operator()(T x) const {
    return std::sqrt(x);
  }
};

struct RsqrtOf {
  template <Floating T>
  T operator()(T x) const {
    return T{1} / std::sqrt(x);
  }
};

// With this order of operands a NaN is kept, and the comparison compiles to the CPU's maximum instruction.
struct ReluOf {
  template <Signed T>
  T operator()(T x) const {
    return T{0} > x ? T{0} : x;
  }
};

// Infinity minus itself is NaN, and so is NaN minus itself.
struct IsFiniteOf {
  template <Floating T>
  bool operator()(T x) const {
    return x - x == T{0};
  }
};

// Applies the functor F to bf16 elements: computes in f32 and rounds a floating-point result.
template <class F>
struct InF32 {
  template <std::same_as<bf16>... T>
  requires std::is_invocable_v<F, std::conditional_t<true, float, T>...>
  auto operator()(T... x) const {
    const auto result = F{}(static_cast<float>(x)...);
    if constexpr (std::is_same_v<decltype(result), const bool>) {
      return result;
    } else {
      return bf16(result);
    }
  }
};

// The functor that applies F to elements of type T.
template <class F, class T>
using OnElements = std::conditional_t<std::is_same_v<T, bf16>, InF32<F>, F>;

}  // namespace pmaptrain::ops
