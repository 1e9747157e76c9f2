#include "core/ops/fused/vector.h"

#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

#include "core/kernel/vector_math.h"
#include "core/ops/cast/cast.h"
#include "core/ops/cast/convert.h"
#include "core/ops/elementwise/binary.h"
#include "core/ops/elementwise/compare.h"
#include "core/ops/elementwise/functors.h"
#include "core/ops/elementwise/unary.h"

namespace pmaptrain::ops {
namespace {

enum class Function { add, sub, mul, div, max, eq, ne, lt, le, gt, ge, neg, relu, sqrt, is_finite, cast, select, none };

Function function_of(const Op& op) {
  if (op.as<Add>()) return Function::add;
  if (op.as<Sub>()) return Function::sub;
  if (op.as<Mul>()) return Function::mul;
  if (op.as<Div>()) return Function::div;
  if (op.as<Max>()) return Function::max;
  if (op.as<Eq>()) return Function::eq;
  if (op.as<Ne>()) return Function::ne;
  if (op.as<Lt>()) return Function::lt;
  if (op.as<Le>()) return Function::le;
  if (op.as<Gt>()) return Function::gt;
  if (op.as<Ge>()) return Function::ge;
  if (op.as<Neg>()) return Function::neg;
  if (op.as<Relu>()) return Function::relu;
  if (op.as<Sqrt>()) return Function::sqrt;
  if (op.as<IsFinite>()) return Function::is_finite;
  if (op.as<Cast>()) return Function::cast;
  if (op.as<Select>()) return Function::select;
  return Function::none;  // exp, log, tanh: see find_vector_math
}

template <class To>
struct ConvertTo {
  template <class From>
  To operator()(From x) const {
    return convert<To>(x);
  }
};

namespace portable {
#include "core/ops/fused/loops.inc"
}

// Contraction is off for the whole program, so that wider vectors give the same bits.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define PMAPTRAIN_WIDE_LOOPS 1
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace wide {
#include "core/ops/fused/loops.inc"
}
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")
namespace widest {
#include "core/ops/fused/loops.inc"
}
#pragma GCC pop_options

bool has_wide_vectors() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
  return has;
}

bool has_widest_vectors() {
  static const bool has = has_wide_vectors() && __builtin_cpu_supports("avx512f") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has;
}
#endif

template <class T>
void repeat(const std::byte* a, const std::byte*, const std::byte*, std::byte* out, std::size_t n) {
  const T value = *reinterpret_cast<const T*>(a);
  T* const to = reinterpret_cast<T*>(out);
  for (std::size_t i = 0; i < n; ++i) to[i] = value;
}

template <std::size_t Size>
void copy(const std::byte* a, const std::byte*, const std::byte*, std::byte* out, std::size_t n) {
  std::memmove(out, a, n * Size);
}

#ifndef PMAPTRAIN_REFERENCE_KERNELS
template <void (*F)(std::size_t, const float*, float*)>
void call(const std::byte* a, const std::byte*, const std::byte*, std::byte* out, std::size_t n) {
  F(n, reinterpret_cast<const float*>(a), reinterpret_cast<float*>(out));
}
#endif

// The functions that the ops' own kernels call, so that fusing changes no bit.
VectorFunction find_vector_math([[maybe_unused]] const Op& op, [[maybe_unused]] DType operand) {
#ifndef PMAPTRAIN_REFERENCE_KERNELS
  if (operand != DType::f32) return nullptr;
  if (op.as<Exp>() != nullptr) return &call<vector_exp>;
  if (op.as<Log>() != nullptr) return &call<vector_log>;
  if (op.as<Tanh>() != nullptr) return &call<vector_tanh>;
#endif
  return nullptr;
}

}  // namespace

VectorFunction find_vector_function(const Op& op, DType operand, unsigned scalars) {
  const Function function = function_of(op);
  if (function == Function::none) return find_vector_math(op, operand);
  const DType to = function == Function::cast ? op.as<Cast>()->dtype : operand;
#ifdef PMAPTRAIN_WIDE_LOOPS
  if (has_widest_vectors()) return widest::find(function, operand, to, scalars);
  if (has_wide_vectors()) return wide::find(function, operand, to, scalars);
#endif
  return portable::find(function, operand, to, scalars);
}

VectorFunction find_copy(std::size_t size, bool scalar) {
  switch (size) {
    case 1: return scalar ? &repeat<std::uint8_t> : &copy<1>;
    case 4: return scalar ? &repeat<std::uint32_t> : &copy<4>;
    default: return scalar ? &repeat<std::uint64_t> : &copy<8>;
  }
}

}  // namespace pmaptrain::ops
