// Arithmetic on two or three values of equal element type, floating or integer. Integers wrap.
#pragma once

#include <string_view>
#include <vector>

#include "core/ops/elementwise/elementwise.h"

namespace pmaptrain::ops {

// a + b
struct Add : Elementwise<Add> {
  static constexpr std::string_view name = "add";
  static constexpr bool adds = true;
  static constexpr ElementKinds takes = ElementKinds::numbers;
  using Of = AddOf;
  Cotangents derivative(VjpContext& context) const;
};

// a - b
struct Sub : Elementwise<Sub> {
  static constexpr std::string_view name = "sub";
  static constexpr ElementKinds takes = ElementKinds::numbers;
  using Of = SubOf;
  Cotangents derivative(VjpContext& context) const;
};

// a * b
struct Mul : Elementwise<Mul> {
  static constexpr std::string_view name = "mul";
  static constexpr ElementKinds takes = ElementKinds::numbers;
  using Of = MulOf;
  Cotangents derivative(VjpContext& context) const;
};

// a / b, rounded towards zero for integers. An integer divided by 0 is 0, so that padding cannot trap.
struct Div : Elementwise<Div> {
  static constexpr std::string_view name = "div";
  static constexpr ElementKinds takes = ElementKinds::numbers;
  using Of = DivOf;
  Cotangents derivative(VjpContext& context) const;
};

// The remainder of a division that rounds towards zero; it has the sign of a. If b is 0, the remainder is a for
// integers, and NaN for floating values.
struct Rem : Elementwise<Rem> {
  static constexpr std::string_view name = "rem";
  static constexpr ElementKinds takes = ElementKinds::numbers;
  using Of = RemOf;
  Cotangents derivative(VjpContext& context) const;
};

// a to the power b, with the C library's special values. If a is 0, the derivative in b is 0.
struct Pow : Elementwise<Pow> {
  static constexpr std::string_view name = "pow";
  static constexpr ElementKinds takes = ElementKinds::floating;
  using Of = PowOf;
  static constexpr VectorMath2 vectors = vector_pow;
  Cotangents derivative(VjpContext& context) const;
};

// The larger; a NaN in either operand is the result. Two equals split the cotangent in halves (rule 5).
struct Max : Elementwise<Max> {
  static constexpr std::string_view name = "max";
  static constexpr ElementKinds takes = ElementKinds::numbers;
  using Of = MaxOf;
  Cotangents derivative(VjpContext& context) const;
};

// The smaller; a NaN in either operand is the result. Two equals split the cotangent in halves (rule 5).
struct Min : Elementwise<Min> {
  static constexpr std::string_view name = "min";
  static constexpr ElementKinds takes = ElementKinds::numbers;
  using Of = MinOf;
  Cotangents derivative(VjpContext& context) const;
};

// low, x, high -> x, limited to [low, high]; if low > high, the result is high. If any operand is NaN, the result is
// NaN. If x equals a bound, no operand gets the cotangent (rule 5).
struct Clamp : Elementwise<Clamp> {
  static constexpr std::string_view name = "clamp";
  static constexpr ElementKinds takes = ElementKinds::numbers;
  using Of = ClampOf;
  Cotangents derivative(VjpContext& context) const;
};

}  // namespace pmaptrain::ops
