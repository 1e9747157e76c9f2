// Functions of one value.
#pragma once

#include <string_view>
#include <vector>

#include "core/ops/elementwise/elementwise.h"

namespace pmaptrain::ops {

// -x, for floating and signed values.
struct Neg : Elementwise<Neg> {
  static constexpr std::string_view name = "neg";
  std::vector<Type> infer(const InferContext& context) const {
    return infer_unary(name, context, Domain::signed_numbers);
  }
  Cotangents derivative(VjpContext& context) const;
  void reference(const ReferenceCall& call) const;
};

// e to the x.
struct Exp : Elementwise<Exp> {
  static constexpr std::string_view name = "exp";
  std::vector<Type> infer(const InferContext& context) const { return infer_unary(name, context, Domain::floating); }
  Cotangents derivative(VjpContext& context) const;
  void reference(const ReferenceCall& call) const;
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
};

// The natural logarithm; -inf at 0 and NaN below.
struct Log : Elementwise<Log> {
  static constexpr std::string_view name = "log";
  std::vector<Type> infer(const InferContext& context) const { return infer_unary(name, context, Domain::floating); }
  Cotangents derivative(VjpContext& context) const;
  void reference(const ReferenceCall& call) const;
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
};

// The square root; NaN below 0.
struct Sqrt : Elementwise<Sqrt> {
  static constexpr std::string_view name = "sqrt";
  std::vector<Type> infer(const InferContext& context) const { return infer_unary(name, context, Domain::floating); }
  Cotangents derivative(VjpContext& context) const;
  void reference(const ReferenceCall& call) const;
};

// The hyperbolic tangent.
struct Tanh : Elementwise<Tanh> {
  static constexpr std::string_view name = "tanh";
  std::vector<Type> infer(const InferContext& context) const { return infer_unary(name, context, Domain::floating); }
  Cotangents derivative(VjpContext& context) const;
  void reference(const ReferenceCall& call) const;
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
};

// x where it is above 0, else 0; a NaN stays. The derivative at 0 is 0 (rule 5).
struct Relu : Elementwise<Relu> {
  static constexpr std::string_view name = "relu";
  std::vector<Type> infer(const InferContext& context) const {
    return infer_unary(name, context, Domain::signed_numbers);
  }
  Cotangents derivative(VjpContext& context) const;
  void reference(const ReferenceCall& call) const;
};

// The same value, through which no derivative passes. Any element type.
struct StopGradient : Elementwise<StopGradient> {
  static constexpr std::string_view name = "stop_gradient";
  static constexpr bool view = true;
  std::vector<Type> infer(const InferContext& context) const { return infer_unary(name, context, Domain::any); }
  Cotangents derivative(VjpContext& context) const;
  void reference(const ReferenceCall& call) const;
};

}  // namespace pmaptrain::ops
