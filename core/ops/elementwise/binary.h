// Arithmetic on two values of equal element type, floating or integer. Integers wrap.
#pragma once

#include <string_view>
#include <vector>

#include "core/ops/elementwise/elementwise.h"

namespace pmaptrain::ops {

// a + b
struct Add : Elementwise<Add> {
  static constexpr std::string_view name = "add";
  std::vector<Type> infer(const InferContext& context) const { return infer_binary(name, context, Domain::numbers); }
  Cotangents derivative(VjpContext& context) const;
  void reference(const ReferenceCall& call) const;
};

// a - b
struct Sub : Elementwise<Sub> {
  static constexpr std::string_view name = "sub";
  std::vector<Type> infer(const InferContext& context) const { return infer_binary(name, context, Domain::numbers); }
  Cotangents derivative(VjpContext& context) const;
  void reference(const ReferenceCall& call) const;
};

// a * b
struct Mul : Elementwise<Mul> {
  static constexpr std::string_view name = "mul";
  std::vector<Type> infer(const InferContext& context) const { return infer_binary(name, context, Domain::numbers); }
  Cotangents derivative(VjpContext& context) const;
  void reference(const ReferenceCall& call) const;
};

// a / b. An integer divided by 0 is 0, so that padding cannot trap; the quotient is rounded towards zero.
struct Div : Elementwise<Div> {
  static constexpr std::string_view name = "div";
  std::vector<Type> infer(const InferContext& context) const { return infer_binary(name, context, Domain::numbers); }
  Cotangents derivative(VjpContext& context) const;
  void reference(const ReferenceCall& call) const;
};

// The larger; a NaN in either operand is the result. Two equals split the cotangent in halves (rule 5).
struct Max : Elementwise<Max> {
  static constexpr std::string_view name = "max";
  std::vector<Type> infer(const InferContext& context) const { return infer_binary(name, context, Domain::numbers); }
  Cotangents derivative(VjpContext& context) const;
  void reference(const ReferenceCall& call) const;
};

}  // namespace pmaptrain::ops
