// Comparisons, whose result is boolean, and selection by a boolean.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "core/ops/elementwise/elementwise.h"

namespace pmaptrain::ops {

inline constexpr NoDerivative boolean_result{"its result is boolean"};

// a == b, for every element type.
struct Eq : Elementwise<Eq> {
  static constexpr std::string_view name = "eq";
  static constexpr ElementKinds takes = ElementKinds::any;
  using Of = std::equal_to<>;
  static constexpr NoDerivative derivative = boolean_result;
};

// a != b; true if either is NaN.
struct Ne : Elementwise<Ne> {
  static constexpr std::string_view name = "ne";
  static constexpr ElementKinds takes = ElementKinds::any;
  using Of = std::not_equal_to<>;
  static constexpr NoDerivative derivative = boolean_result;
};

// a < b; false if either is NaN, like the three ops that follow.
struct Lt : Elementwise<Lt> {
  static constexpr std::string_view name = "lt";
  static constexpr ElementKinds takes = ElementKinds::numbers;
  using Of = std::less<>;
  static constexpr NoDerivative derivative = boolean_result;
};

// a <= b.
struct Le : Elementwise<Le> {
  static constexpr std::string_view name = "le";
  static constexpr ElementKinds takes = ElementKinds::numbers;
  using Of = std::less_equal<>;
  static constexpr NoDerivative derivative = boolean_result;
};

// a > b.
struct Gt : Elementwise<Gt> {
  static constexpr std::string_view name = "gt";
  static constexpr ElementKinds takes = ElementKinds::numbers;
  using Of = std::greater<>;
  static constexpr NoDerivative derivative = boolean_result;
};

// a >= b.
struct Ge : Elementwise<Ge> {
  static constexpr std::string_view name = "ge";
  static constexpr ElementKinds takes = ElementKinds::numbers;
  using Of = std::greater_equal<>;
  static constexpr NoDerivative derivative = boolean_result;
};

// True unless the element is infinite or NaN.
struct IsFinite : Elementwise<IsFinite> {
  static constexpr std::string_view name = "is_finite";
  static constexpr ElementKinds takes = ElementKinds::floating;
  using Of = IsFiniteOf;
  static constexpr NoDerivative derivative = boolean_result;
};

// predicate, on_true, on_false -> on_true where the predicate is true, else on_false. Each operand has the shape of the
// result, or is a scalar [].
struct Select : Elementwise<Select> {
  static constexpr std::string_view name = "select";
  std::vector<Type> infer(const InferContext& context) const { return infer_select(context); }
  Cotangents derivative(VjpContext& context) const;
  void reference(const ReferenceCall& call) const;
};

}  // namespace pmaptrain::ops
