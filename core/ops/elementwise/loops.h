// The loops of elementwise kernels, simple enough for the compiler to vectorize. There is one for each combination of
// scalar and array operands.
//
// A result may use the memory of an operand of the same size. Element i of the result depends only on element i of that
// operand, so the loops are marked `ivdep`. Nothing else may overlap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "core/kernel/reference.h"
#include "core/ops/elementwise/functors.h"

namespace pmaptrain::ops {

// R out[i] = f(T operand[i])
template <class T, class R, class F>
void map_unary(const ReferenceCall& call, F f) {
  const auto n = static_cast<std::size_t>(call.results[0].size());
  const T* a = call.operands[0].as<T>();
  R* out = call.results[0].as<R>();
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) out[i] = f(a[i]);
}

// R out[i] = f(T a[i], T b[i]); an operand with one element is a scalar.
template <class T, class R, class F>
void map_binary(const ReferenceCall& call, F f) {
  const auto n = static_cast<std::size_t>(call.results[0].size());
  if (n == 0) return;
  const T* a = call.operands[0].as<T>();
  const T* b = call.operands[1].as<T>();
  R* out = call.results[0].as<R>();
  const bool scalar_a = call.operands[0].size() == 1;
  const bool scalar_b = call.operands[1].size() == 1;
  if (scalar_a && scalar_b) {
    std::fill_n(out, n, f(*a, *b));
  } else if (scalar_a) {
    const T x = *a;
#pragma GCC ivdep
    for (std::size_t i = 0; i < n; ++i) out[i] = f(x, b[i]);
  } else if (scalar_b) {
    const T y = *b;
#pragma GCC ivdep
    for (std::size_t i = 0; i < n; ++i) out[i] = f(a[i], y);
  } else {
#pragma GCC ivdep
    for (std::size_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
  }
}

// R out[i] = f(T a[i], T b[i], T c[i]); an operand with one element is a scalar.
template <class T, class R, class F>
void map_ternary(const ReferenceCall& call, F f) {
  const auto n = static_cast<std::size_t>(call.results[0].size());
  if (n == 0) return;
  const T* a = call.operands[0].as<T>();
  const T* b = call.operands[1].as<T>();
  const T* c = call.operands[2].as<T>();
  R* out = call.results[0].as<R>();
  const auto step = [&](std::size_t i) -> std::size_t { return call.operands[i].size() == 1 ? 0 : 1; };
  const std::size_t step_a = step(0), step_b = step(1), step_c = step(2);
  if (step_a == 0 && step_c == 0) {
    const T x = *a, z = *c;
#pragma GCC ivdep
    for (std::size_t i = 0; i < n; ++i) out[i] = f(x, b[i * step_b], z);
  } else {
#pragma GCC ivdep
    for (std::size_t i = 0; i < n; ++i) out[i] = f(a[i * step_a], b[i * step_b], c[i * step_c]);
  }
}

// Applies the functor F to all elements, for the element types that it supports; infer() has refused all others.
template <class F>
void map(const ReferenceCall& call) {
  dispatch(call.operands[0].dtype(), [&]<class T>() {
    using G = OnElements<F, T>;
    if constexpr (std::is_invocable_v<G, T>) {
      map_unary<T, std::invoke_result_t<G, T>>(call, G{});
    } else if constexpr (std::is_invocable_v<G, T, T>) {
      map_binary<T, std::invoke_result_t<G, T, T>>(call, G{});
    } else if constexpr (std::is_invocable_v<G, T, T, T>) {
      map_ternary<T, std::invoke_result_t<G, T, T, T>>(call, G{});
    }
  });
}

}  // namespace pmaptrain::ops
