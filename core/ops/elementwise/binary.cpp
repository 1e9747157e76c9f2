#include "core/ops/elementwise/binary.h"

#include "core/graph/builder.h"
#include "core/ops/elementwise/compare.h"
#include "core/ops/elementwise/derivatives.h"
#include "core/ops/elementwise/unary.h"

namespace pmaptrain::ops {
namespace {

// The derivative of max and min: the cotangent goes to the operand that `Wins` selects, and is halved between equals.
template <class Wins>
Cotangents to_the_winner(VjpContext& context) {
  Builder& b = context.b;
  const Value dy = *context.cotangents[0];
  const DType dtype = b.type(dy).dtype;
  const Value zero = b.constant(dtype, 0);
  const Value half = b.emit(Mul{}, {dy, b.constant(dtype, 0.5)});
  const Value equal = b.emit(Eq{}, {context.operands[0], context.operands[1]});
  Cotangents result(2);
  for (std::size_t i = 0; i < 2; ++i) {
    if (!context.needed[i]) continue;
    const Value wins = b.emit(Wins{}, {context.operands[i], context.operands[1 - i]});
    const Value unequal = b.emit(Select{}, {wins, dy, zero});
    result[i] = fit_to_operand(b, b.emit(Select{}, {equal, half, unequal}), context.operands[i]);
  }
  return result;
}

}  // namespace

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
  // Sum before negating: if the operand is a scalar, only one element is negated.
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

// With y = a - trunc(a / b) · b: da = dy, db = -dy · trunc(a / b), which is (a - y) / b.
Cotangents Rem::derivative(VjpContext& context) const {
  Builder& b = context.b;
  const Value dy = *context.cotangents[0];
  const Value divisor = context.operands[1];
  Cotangents result(2);
  if (context.needed[0]) result[0] = fit_to_operand(b, dy, context.operands[0]);
  if (context.needed[1]) {
    const Value whole = b.emit(Div{}, {b.emit(Sub{}, {context.operands[0], context.results[0]}), divisor});
    result[1] = b.emit(Neg{}, {fit_to_operand(b, b.emit(Mul{}, {dy, whole}), divisor)});
  }
  return result;
}

// With y = a^b: da = dy · b · a^(b - 1), which is 0 if b is 0, and db = dy · log(a) · y, which is 0 if a is 0.
Cotangents Pow::derivative(VjpContext& context) const {
  Builder& b = context.b;
  const Value dy = *context.cotangents[0];
  const Value base = context.operands[0], power = context.operands[1];
  const DType dtype = b.type(dy).dtype;
  const Value zero = b.constant(dtype, 0);
  const Value one = b.constant(dtype, 1);
  Cotangents result(2);
  if (context.needed[0]) {
    const Value flat = b.emit(Eq{}, {power, zero});
    const Value less = b.emit(Select{}, {flat, one, b.emit(Sub{}, {power, one})});
    const Value slope = b.emit(Mul{}, {power, b.emit(Pow{}, {base, less})});
    result[0] = fit_to_operand(b, b.emit(Mul{}, {dy, slope}), base);
  }
  if (context.needed[1]) {
    const Value at_zero = b.emit(Eq{}, {base, zero});
    const Value log = b.emit(Log{}, {b.emit(Select{}, {at_zero, one, base})});
    // A negative power of 0 is infinite, and infinity times 0 would be NaN.
    const Value y = b.emit(Select{}, {at_zero, zero, context.results[0]});
    const Value slope = b.emit(Mul{}, {log, y});
    result[1] = fit_to_operand(b, b.emit(Mul{}, {dy, slope}), power);
  }
  return result;
}

Cotangents Max::derivative(VjpContext& context) const { return to_the_winner<Gt>(context); }

Cotangents Min::derivative(VjpContext& context) const { return to_the_winner<Lt>(context); }

Cotangents Clamp::derivative(VjpContext& context) const {
  Builder& b = context.b;
  const Value low = context.operands[0], x = context.operands[1], high = context.operands[2];
  const Value dy = *context.cotangents[0];
  const Value zero = b.constant(b.type(dy).dtype, 0);
  Cotangents result(3);
  const auto pass = [&](std::size_t i, Value where, Value cotangent) {
    result[i] = fit_to_operand(b, b.emit(Select{}, {where, cotangent, zero}), context.operands[i]);
  };
  if (context.needed[2]) {
    const Value raised = b.emit(Max{}, {x, low});
    pass(2, b.emit(Gt{}, {raised, high}), dy);
  }
  if (context.needed[1]) {
    const Value below = b.emit(Select{}, {b.emit(Lt{}, {x, high}), dy, zero});
    pass(1, b.emit(Gt{}, {x, low}), below);
  }
  if (context.needed[0]) {
    const Value below = b.emit(Select{}, {b.emit(Lt{}, {low, high}), dy, zero});
    pass(0, b.emit(Gt{}, {low, x}), below);
  }
  return result;
}

}  // namespace pmaptrain::ops
