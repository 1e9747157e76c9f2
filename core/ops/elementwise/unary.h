// Functions of one value.
#pragma once

#include <string_view>
#include <vector>

#include "core/ops/elementwise/elementwise.h"

namespace pmaptrain::ops {

// -x, for floating and signed values.
struct Neg : Elementwise<Neg> {
  static constexpr std::string_view name = "neg";
  static constexpr ElementKinds takes = ElementKinds::signed_numbers;
  using Of = NegOf;
  Cotangents derivative(VjpContext& context) const;
};

// The absolute value; an integer wraps. The derivative is the sign.
struct Abs : Elementwise<Abs> {
  static constexpr std::string_view name = "abs";
  static constexpr ElementKinds takes = ElementKinds::signed_numbers;
  using Of = AbsOf;
  Cotangents derivative(VjpContext& context) const;
};

// -1 for negative values, 1 for positive ones; 0, -0 and NaN are returned as they are. The derivative is 0 everywhere.
struct Sign : Elementwise<Sign> {
  static constexpr std::string_view name = "sign";
  static constexpr ElementKinds takes = ElementKinds::signed_numbers;
  using Of = SignOf;
  Cotangents derivative(VjpContext& context) const;
};

// The largest integer that is not above x. The derivative is 0 everywhere.
struct Floor : Elementwise<Floor> {
  static constexpr std::string_view name = "floor";
  static constexpr ElementKinds takes = ElementKinds::floating;
  using Of = FloorOf;
  Cotangents derivative(VjpContext& context) const;
};

// The exponential function.
struct Exp : Elementwise<Exp> {
  static constexpr std::string_view name = "exp";
  static constexpr ElementKinds takes = ElementKinds::floating;
  using Of = ExpOf;
  static constexpr VectorMath vectors = vector_exp;
  Cotangents derivative(VjpContext& context) const;
};

// exp(x) - 1, accurate near 0.
struct Expm1 : Elementwise<Expm1> {
  static constexpr std::string_view name = "expm1";
  static constexpr ElementKinds takes = ElementKinds::floating;
  using Of = Expm1Of;
  static constexpr VectorMath vectors = vector_expm1;
  Cotangents derivative(VjpContext& context) const;
};

// The natural logarithm; -inf at 0 and NaN for negative values.
struct Log : Elementwise<Log> {
  static constexpr std::string_view name = "log";
  static constexpr ElementKinds takes = ElementKinds::floating;
  using Of = LogOf;
  static constexpr VectorMath vectors = vector_log;
  Cotangents derivative(VjpContext& context) const;
};

// log(1 + x), accurate near 0; -inf at -1 and NaN below.
struct Log1p : Elementwise<Log1p> {
  static constexpr std::string_view name = "log1p";
  static constexpr ElementKinds takes = ElementKinds::floating;
  using Of = Log1pOf;
  static constexpr VectorMath vectors = vector_log1p;
  Cotangents derivative(VjpContext& context) const;
};

// The square root; NaN for negative values.
struct Sqrt : Elementwise<Sqrt> {
  static constexpr std::string_view name = "sqrt";
  static constexpr ElementKinds takes = ElementKinds::floating;
  using Of = SqrtOf;
  Cotangents derivative(VjpContext& context) const;
};

// 1 / sqrt(x); inf at 0 and NaN for negative values.
struct Rsqrt : Elementwise<Rsqrt> {
  static constexpr std::string_view name = "rsqrt";
  static constexpr ElementKinds takes = ElementKinds::floating;
  using Of = RsqrtOf;
  Cotangents derivative(VjpContext& context) const;
};

// The sine; NaN for infinities.
struct Sin : Elementwise<Sin> {
  static constexpr std::string_view name = "sin";
  static constexpr ElementKinds takes = ElementKinds::floating;
  using Of = SinOf;
  static constexpr VectorMath vectors = vector_sin;
  Cotangents derivative(VjpContext& context) const;
};

// The cosine; NaN for infinities.
struct Cos : Elementwise<Cos> {
  static constexpr std::string_view name = "cos";
  static constexpr ElementKinds takes = ElementKinds::floating;
  using Of = CosOf;
  static constexpr VectorMath vectors = vector_cos;
  Cotangents derivative(VjpContext& context) const;
};

// The hyperbolic tangent.
struct Tanh : Elementwise<Tanh> {
  static constexpr std::string_view name = "tanh";
  static constexpr ElementKinds takes = ElementKinds::floating;
  using Of = TanhOf;
  static constexpr VectorMath vectors = vector_tanh;
  Cotangents derivative(VjpContext& context) const;
};

// The error function.
struct Erf : Elementwise<Erf> {
  static constexpr std::string_view name = "erf";
  static constexpr ElementKinds takes = ElementKinds::floating;
  using Of = ErfOf;
  static constexpr VectorMath vectors = vector_erf;
  Cotangents derivative(VjpContext& context) const;
};

// max(x, 0); a NaN is kept. The derivative at 0 is 0 (rule 5).
struct Relu : Elementwise<Relu> {
  static constexpr std::string_view name = "relu";
  static constexpr ElementKinds takes = ElementKinds::signed_numbers;
  using Of = ReluOf;
  Cotangents derivative(VjpContext& context) const;
};

// Returns the operand, of any element type.
template <class Self>
struct Identity : Elementwise<Self> {
  static constexpr bool view = true;
  std::vector<Type> infer(const InferContext& context) const {
    return infer_elementwise(Self::name, context, 1, ElementKinds::any, false);
  }
  void reference(const ReferenceCall& call) const {
    dispatch(call.results[0].dtype(), [&]<class T>() { map_unary<T, T>(call, [](T x) { return x; }); });
  }
};

// The operand. No derivative passes through it.
struct StopGradient : Identity<StopGradient> {
  static constexpr std::string_view name = "stop_gradient";
  Cotangents derivative(VjpContext& context) const;
};

// The first operand. No pass treats the result as equal to it, so common subexpressions are not merged across it, as in
// JAX. This is useful where computing a value again is cheaper than keeping it. What reads the result runs after the
// second operand, if there is one, has been computed; its value does not matter.
struct OptimizationBarrier : Identity<OptimizationBarrier> {
  static constexpr std::string_view name = "optimization_barrier";
  static constexpr bool elementwise = false;  // the operands may have different shapes
  std::vector<Type> infer(const InferContext& context) const;
  RowRule row_rule(std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
};

}  // namespace pmaptrain::ops
