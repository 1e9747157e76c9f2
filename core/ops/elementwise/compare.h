// Comparisons, whose result is boolean, and selection by a boolean.
#pragma once

#include <string_view>
#include <vector>

#include "core/ops/elementwise/elementwise.h"

namespace pmaptrain::ops {

inline constexpr NoDerivative boolean_result{"its result is boolean"};

// a == b, for every element type.
struct Eq : Elementwise<Eq> {
  static constexpr std::string_view name = "eq";
  std::vector<Type> infer(const InferContext& context) const { return infer_compare(name, context, Domain::any); }
  static constexpr NoDerivative derivative = boolean_result;
  void reference(const ReferenceCall& call) const;
};

// a != b; true where either is NaN.
struct Ne : Elementwise<Ne> {
  static constexpr std::string_view name = "ne";
  std::vector<Type> infer(const InferContext& context) const { return infer_compare(name, context, Domain::any); }
  static constexpr NoDerivative derivative = boolean_result;
  void reference(const ReferenceCall& call) const;
};

// a < b; false where either is NaN, as the three that follow.
struct Lt : Elementwise<Lt> {
  static constexpr std::string_view name = "lt";
  std::vector<Type> infer(const InferContext& context) const { return infer_compare(name, context, Domain::numbers); }
  static constexpr NoDerivative derivative = boolean_result;
  void reference(const ReferenceCall& call) const;
};

// a <= b.
struct Le : Elementwise<Le> {
  static constexpr std::string_view name = "le";
  std::vector<Type> infer(const InferContext& context) const { return infer_compare(name, context, Domain::numbers); }
  static constexpr NoDerivative derivative = boolean_result;
  void reference(const ReferenceCall& call) const;
};

// a > b.
struct Gt : Elementwise<Gt> {
  static constexpr std::string_view name = "gt";
  std::vector<Type> infer(const InferContext& context) const { return infer_compare(name, context, Domain::numbers); }
  static constexpr NoDerivative derivative = boolean_result;
  void reference(const ReferenceCall& call) const;
};

// a >= b.
struct Ge : Elementwise<Ge> {
  static constexpr std::string_view name = "ge";
  std::vector<Type> infer(const InferContext& context) const { return infer_compare(name, context, Domain::numbers); }
  static constexpr NoDerivative derivative = boolean_result;
  void reference(const ReferenceCall& call) const;
};

// Neither infinite nor NaN.
struct IsFinite : Elementwise<IsFinite> {
  static constexpr std::string_view name = "is_finite";
  std::vector<Type> infer(const InferContext& context) const;
  static constexpr NoDerivative derivative = boolean_result;
  void reference(const ReferenceCall& call) const;
};

// predicate, on_true, on_false -> on_true where the predicate holds, else on_false. Each operand has the result's
// shape or [].
struct Select : Elementwise<Select> {
  static constexpr std::string_view name = "select";
  std::vector<Type> infer(const InferContext& context) const { return infer_select(context); }
  Cotangents derivative(VjpContext& context) const;
  void reference(const ReferenceCall& call) const;
};

}  // namespace pmaptrain::ops
