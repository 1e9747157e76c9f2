#include "core/ops/elementwise/unary.h"

#include <cmath>
#include <type_traits>

#include "core/ops/elementwise/binary.h"
#include "core/ops/elementwise/compare.h"
#include "core/ops/elementwise/functors.h"
#include "core/ops/elementwise/loops.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

template <class F>
void run_floating(const ReferenceCall& call, F f) {
  dispatch_floating(call.results[0].dtype(), [&]<class T>() { map_unary<T, T>(call, f); });
}

// Expects that infer has refused unsigned types and bool.
template <class F>
void run_signed(const ReferenceCall& call, F f) {
  dispatch(call.results[0].dtype(), [&]<class T>() {
    if constexpr (std::is_signed_v<T>) map_unary<T, T>(call, f);
  });
}

// The one cotangent of an op with one operand.
Cotangents only(Value value) { return {value}; }

}  // namespace

void Neg::reference(const ReferenceCall& call) const { run_signed(call, NegOf{}); }

void Exp::reference(const ReferenceCall& call) const {
  run_floating(call, [](auto x) { return std::exp(x); });
}

void Log::reference(const ReferenceCall& call) const {
  run_floating(call, [](auto x) { return std::log(x); });
}

void Sqrt::reference(const ReferenceCall& call) const { run_floating(call, SqrtOf{}); }

void Tanh::reference(const ReferenceCall& call) const {
  run_floating(call, [](auto x) { return std::tanh(x); });
}

void Relu::reference(const ReferenceCall& call) const { run_signed(call, ReluOf{}); }

void StopGradient::reference(const ReferenceCall& call) const {
  dispatch(call.results[0].dtype(), [&]<class T>() { map_unary<T, T>(call, [](T x) { return x; }); });
}

Cotangents Neg::derivative(VjpContext& context) const { return only(context.b.emit(Neg{}, {*context.cotangents[0]})); }

Cotangents Exp::derivative(VjpContext& context) const {
  return only(context.b.emit(Mul{}, {*context.cotangents[0], context.results[0]}));
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

// By the result, which is above 0 exactly where the operand is: the next layer keeps it anyway.
Cotangents Relu::derivative(VjpContext& context) const {
  Builder& b = context.b;
  const Value dy = *context.cotangents[0];
  const Value zero = b.constant(b.type(dy).dtype, 0);
  return only(b.emit(Select{}, {b.emit(Gt{}, {context.results[0], zero}), dy, zero}));
}

Cotangents StopGradient::derivative(VjpContext&) const { return Cotangents(1); }

}  // namespace pmaptrain::ops
