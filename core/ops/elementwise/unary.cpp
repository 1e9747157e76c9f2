#include "core/ops/elementwise/unary.h"

#include <numbers>

#include "core/graph/builder.h"
#include "core/ops/elementwise/binary.h"
#include "core/ops/elementwise/compare.h"
#include "core/ops/support/epilogue.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

// The cotangents of an op with one operand.
Cotangents only(Value value) { return {value}; }

}  // namespace

Cotangents Neg::derivative(VjpContext& context) const { return only(context.b.emit(Neg{}, {*context.cotangents[0]})); }

Cotangents Exp::derivative(VjpContext& context) const {
  return only(context.b.emit(Mul{}, {*context.cotangents[0], context.results[0]}));
}

// dy · sign(x)
Cotangents Abs::derivative(VjpContext& context) const {
  const Value sign = context.b.emit(Sign{}, {context.operands[0]});
  return only(context.b.emit(Mul{}, {*context.cotangents[0], sign}));
}

Cotangents Sign::derivative(VjpContext&) const { return Cotangents(1); }

Cotangents Floor::derivative(VjpContext&) const { return Cotangents(1); }

// dy · (y + 1)
Cotangents Expm1::derivative(VjpContext& context) const {
  Builder& b = context.b;
  const Value dy = *context.cotangents[0];
  const Value slope = b.emit(Add{}, {context.results[0], b.constant(b.type(dy).dtype, 1)});
  return only(b.emit(Mul{}, {dy, slope}));
}

// dy / (1 + x)
Cotangents Log1p::derivative(VjpContext& context) const {
  Builder& b = context.b;
  const Value dy = *context.cotangents[0];
  const Value sum = b.emit(Add{}, {context.operands[0], b.constant(b.type(dy).dtype, 1)});
  return only(b.emit(Div{}, {dy, sum}));
}

// -dy · y / 2x
Cotangents Rsqrt::derivative(VjpContext& context) const {
  Builder& b = context.b;
  const Value dy = *context.cotangents[0];
  const Value slope = b.emit(Div{}, {context.results[0], context.operands[0]});
  const Value half = b.emit(Mul{}, {dy, b.constant(b.type(dy).dtype, -0.5)});
  return only(b.emit(Mul{}, {half, slope}));
}

Cotangents Sin::derivative(VjpContext& context) const {
  const Value slope = context.b.emit(Cos{}, {context.operands[0]});
  return only(context.b.emit(Mul{}, {*context.cotangents[0], slope}));
}

Cotangents Cos::derivative(VjpContext& context) const {
  Builder& b = context.b;
  const Value slope = b.emit(Neg{}, {b.emit(Sin{}, {context.operands[0]})});
  return only(b.emit(Mul{}, {*context.cotangents[0], slope}));
}

// dy · 2/√π · e^(-x²)
Cotangents Erf::derivative(VjpContext& context) const {
  Builder& b = context.b;
  const Value x = context.operands[0], dy = *context.cotangents[0];
  const Value bell = b.emit(Exp{}, {b.emit(Neg{}, {b.emit(Mul{}, {x, x})})});
  const Value scaled = b.emit(Mul{}, {dy, b.constant(b.type(dy).dtype, 2 * std::numbers::inv_sqrtpi)});
  return only(b.emit(Mul{}, {scaled, bell}));
}

Cotangents Log::derivative(VjpContext& context) const {
  return only(context.b.emit(Div{}, {*context.cotangents[0], context.operands[0]}));
}

// dy / 2y
Cotangents Sqrt::derivative(VjpContext& context) const {
  Builder& b = context.b;
  const Value dy = *context.cotangents[0];
  const Value half = b.emit(Mul{}, {dy, b.constant(b.type(dy).dtype, 0.5)});
  return only(b.emit(Div{}, {half, context.results[0]}));
}

// dy · (1 - y²)
Cotangents Tanh::derivative(VjpContext& context) const {
  Builder& b = context.b;
  const Value dy = *context.cotangents[0];
  const Value y = context.results[0];
  const Value slope = b.emit(Sub{}, {b.constant(b.type(dy).dtype, 1), b.emit(Mul{}, {y, y})});
  return only(b.emit(Mul{}, {dy, slope}));
}

// Uses the result, which is positive exactly where the operand is. The next layer keeps the result in memory anyway.
Cotangents Relu::derivative(VjpContext& context) const { return only(relu_cotangent(context)); }

Cotangents StopGradient::derivative(VjpContext&) const { return Cotangents(1); }

std::vector<Type> OptimizationBarrier::infer(const InferContext& context) const {
  if (context.operands.size() != 2) return Identity::infer(context);
  return one_result(context.operands[0].dtype, context.operands[0].shape);
}

RowRule OptimizationBarrier::row_rule(std::span<const Type> operands, std::span<const Type> results) const {
  if (operands.size() != 2) return Identity::row_rule(operands, results);
  const Type &x = operands[0], &awaited = operands[1];
  return keeps_rows_if(x.varying == awaited.varying && !x.shape.empty() && !awaited.shape.empty() &&
                       x.shape[0] == awaited.shape[0]);
}

Cotangents OptimizationBarrier::derivative(VjpContext& context) const {
  Cotangents cotangents(context.operands.size());
  cotangents[0] = *context.cotangents[0];
  return cotangents;
}

}  // namespace pmaptrain::ops
