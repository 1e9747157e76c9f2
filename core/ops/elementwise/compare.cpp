#include "core/ops/elementwise/compare.h"

#include <algorithm>
#include <cstdint>
#include <functional>

#include "core/ops/elementwise/derivatives.h"
#include "core/ops/elementwise/functors.h"
#include "core/ops/elementwise/loops.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

template <class F>
void run_compare(const ReferenceCall& call) {
  dispatch(call.operands[0].dtype(), [&]<class T>() { map_binary<T, bool>(call, F{}); });
}

// Which operands are scalars is told apart once, outside of the loops.
template <class T>
void run_select(const ReferenceCall& call) {
  const auto n = static_cast<std::size_t>(call.results[0].size());
  if (n == 0) return;
  const std::uint8_t* predicate = call.operands[0].as<std::uint8_t>();
  const T* on_true = call.operands[1].as<T>();
  const T* on_false = call.operands[2].as<T>();
  T* out = call.results[0].as<T>();
  const bool scalar_true = call.operands[1].size() == 1;
  const bool scalar_false = call.operands[2].size() == 1;
  if (call.operands[0].size() == 1) {
    const bool chosen = *predicate != 0;
    const T* source = chosen ? on_true : on_false;
    if (chosen ? scalar_true : scalar_false) {
      std::fill_n(out, n, *source);
    } else if (source != out) {
      std::copy_n(source, n, out);
    }
    return;
  }
  if (scalar_true && scalar_false) {
    const T x = *on_true, y = *on_false;
#pragma GCC ivdep
    for (std::size_t i = 0; i < n; ++i) out[i] = predicate[i] != 0 ? x : y;
  } else if (scalar_true) {
    const T x = *on_true;
#pragma GCC ivdep
    for (std::size_t i = 0; i < n; ++i) {
      const T y = on_false[i];
      out[i] = predicate[i] != 0 ? x : y;
    }
  } else if (scalar_false) {
    const T y = *on_false;
#pragma GCC ivdep
    for (std::size_t i = 0; i < n; ++i) {
      const T x = on_true[i];
      out[i] = predicate[i] != 0 ? x : y;
    }
  } else {
#pragma GCC ivdep
    for (std::size_t i = 0; i < n; ++i) {
      const T x = on_true[i], y = on_false[i];
      out[i] = predicate[i] != 0 ? x : y;
    }
  }
}

}  // namespace

void Eq::reference(const ReferenceCall& call) const { run_compare<std::equal_to<>>(call); }
void Ne::reference(const ReferenceCall& call) const { run_compare<std::not_equal_to<>>(call); }
void Lt::reference(const ReferenceCall& call) const { run_compare<std::less<>>(call); }
void Le::reference(const ReferenceCall& call) const { run_compare<std::less_equal<>>(call); }
void Gt::reference(const ReferenceCall& call) const { run_compare<std::greater<>>(call); }
void Ge::reference(const ReferenceCall& call) const { run_compare<std::greater_equal<>>(call); }

std::vector<Type> IsFinite::infer(const InferContext& context) const {
  std::vector<Type> types = infer_unary(name, context, Domain::floating);
  types[0].dtype = DType::boolean;
  return types;
}

void IsFinite::reference(const ReferenceCall& call) const {
  dispatch_floating(call.operands[0].dtype(), [&]<class T>() { map_unary<T, bool>(call, IsFiniteOf{}); });
}

void Select::reference(const ReferenceCall& call) const {
  dispatch(call.results[0].dtype(), [&]<class T>() { run_select<T>(call); });
}

Cotangents Select::derivative(VjpContext& context) const {
  Builder& b = context.b;
  const Value predicate = context.operands[0];
  const Value dy = *context.cotangents[0];
  const Value zero = b.constant(b.type(dy).dtype, 0);
  Cotangents result(3);
  if (context.needed[1]) {
    result[1] = fit_to_operand(b, b.emit(Select{}, {predicate, dy, zero}), context.operands[1]);
  }
  if (context.needed[2]) {
    result[2] = fit_to_operand(b, b.emit(Select{}, {predicate, zero, dy}), context.operands[2]);
  }
  return result;
}

}  // namespace pmaptrain::ops
