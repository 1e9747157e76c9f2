#include "core/ops/elementwise/compare.h"

#include <algorithm>
#include <cstdint>

#include "core/ops/elementwise/derivatives.h"

namespace pmaptrain::ops {
namespace {

// Scalar operands are distinguished once, outside the loops.
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
