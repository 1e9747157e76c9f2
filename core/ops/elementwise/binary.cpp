#include "core/ops/elementwise/binary.h"

#include <type_traits>

#include "core/ops/elementwise/compare.h"
#include "core/ops/elementwise/derivatives.h"
#include "core/ops/elementwise/functors.h"
#include "core/ops/elementwise/loops.h"
#include "core/ops/elementwise/unary.h"

namespace pmaptrain::ops {
namespace {

// Expects that infer has refused bool.
template <class F>
void run_binary(const ReferenceCall& call) {
  dispatch(call.results[0].dtype(), [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) map_binary<T, T>(call, F{});
  });
}

}  // namespace

void Add::reference(const ReferenceCall& call) const { run_binary<AddOf>(call); }
void Sub::reference(const ReferenceCall& call) const { run_binary<SubOf>(call); }
void Mul::reference(const ReferenceCall& call) const { run_binary<MulOf>(call); }
void Div::reference(const ReferenceCall& call) const { run_binary<DivOf>(call); }
void Max::reference(const ReferenceCall& call) const { run_binary<MaxOf>(call); }

Cotangents Add::derivative(VjpContext& context) const {
  Cotangents result(2);
  for (std::size_t i = 0; i < 2; ++i) {
    if (context.needed[i]) result[i] = fit_to_operand(context.b, *context.cotangents[0], context.operands[i]);
  }
  return result;
}

Cotangents Sub::derivative(VjpContext& context) const {
  Builder& b = context.b;
  const Value dy = *context.cotangents[0];
  Cotangents result(2);
  if (context.needed[0]) result[0] = fit_to_operand(b, dy, context.operands[0]);
  // The sum first: a scalar is cheaper to negate.
  if (context.needed[1]) result[1] = b.emit(Neg{}, {fit_to_operand(b, dy, context.operands[1])});
  return result;
}

Cotangents Mul::derivative(VjpContext& context) const {
  Builder& b = context.b;
  const Value dy = *context.cotangents[0];
  Cotangents result(2);
  for (std::size_t i = 0; i < 2; ++i) {
    if (!context.needed[i]) continue;
    result[i] = fit_to_operand(b, b.emit(Mul{}, {dy, context.operands[1 - i]}), context.operands[i]);
  }
  return result;
}

// With y = a / b: da = dy / b, db = -dy · y / b.
Cotangents Div::derivative(VjpContext& context) const {
  Builder& b = context.b;
  const Value dy = *context.cotangents[0];
  const Value divisor = context.operands[1];
  Cotangents result(2);
  if (context.needed[0]) result[0] = fit_to_operand(b, b.emit(Div{}, {dy, divisor}), context.operands[0]);
  if (context.needed[1]) {
    const Value quotient = b.emit(Div{}, {b.emit(Mul{}, {dy, context.results[0]}), divisor});
    result[1] = b.emit(Neg{}, {fit_to_operand(b, quotient, divisor)});
  }
  return result;
}

Cotangents Max::derivative(VjpContext& context) const {
  Builder& b = context.b;
  const Value dy = *context.cotangents[0];
  const DType dtype = b.type(dy).dtype;
  const Value zero = b.constant(dtype, 0);
  const Value half = b.emit(Mul{}, {dy, b.constant(dtype, 0.5)});
  const Value equal = b.emit(Eq{}, {context.operands[0], context.operands[1]});
  Cotangents result(2);
  for (std::size_t i = 0; i < 2; ++i) {
    if (!context.needed[i]) continue;
    const Value wins = b.emit(Gt{}, {context.operands[i], context.operands[1 - i]});
    const Value unequal = b.emit(Select{}, {wins, dy, zero});
    result[i] = fit_to_operand(b, b.emit(Select{}, {equal, half, unequal}), context.operands[i]);
  }
  return result;
}

}  // namespace pmaptrain::ops
