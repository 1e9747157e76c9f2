// This file is compiled once for each instruction set. At run time, the best version for the CPU is chosen.
#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include "core/kernel/vector_math.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernel/vector_math.cpp"
// foreach_target.h must come first: it includes this file again for each other instruction set.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include <hwy/contrib/math/math-inl.h>
#include "core/kernel/vector_exp-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pmaptrain {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Each Safe... struct handles all arguments, also NaN and those for which a function of Highway that it calls is not
// defined. SafeExp and SafeTanh are in vector_exp-inl.h.
struct SafeLog {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const V zero = hn::Zero(d);
    V y = hn::Log(d, x);
    y = hn::IfThenElse(hn::Eq(x, zero), hn::Set(d, -infinity), y);
    y = hn::IfThenElse(hn::Lt(x, zero), hn::Set(d, std::numeric_limits<float>::quiet_NaN()), y);
    return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::Eq(x, hn::Set(d, infinity))), x, y);
  }
};

struct SafeExpm1 {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V y = hn::Expm1(d, hn::Max(hn::Min(x, hn::Set(d, 104.0F)), hn::Set(d, -104.0F)));
    // Near 0 the result rounds to x. Returning x keeps -0, and numbers whose square would underflow.
    const V near_zero = hn::Set(d, 1e-8F);
    return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::Lt(hn::Abs(x), near_zero)), x, y);
  }
};

struct SafeLog1p {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const V minus_one = hn::Set(d, -1.0F);
    V y = hn::Log1p(d, x);
    y = hn::IfThenElse(hn::Eq(x, minus_one), hn::Set(d, -infinity), y);
    y = hn::IfThenElse(hn::Lt(x, minus_one), hn::Set(d, std::numeric_limits<float>::quiet_NaN()), y);
    const auto near_zero = hn::Lt(hn::Abs(x), hn::Set(d, 1e-8F));
    const auto itself = hn::Or(hn::Or(hn::IsNaN(x), hn::Eq(x, hn::Set(d, infinity))), near_zero);
    return hn::IfThenElse(itself, x, y);
  }
};

// Highway's sine and cosine are accurate up to 39000. Larger and non-finite angles are passed to the C library's.
template <float (*scalar)(float), class D, class V, class F>
HWY_INLINE V with_far_angles(D d, V x, F near) {
  const auto is_near = hn::Le(hn::Abs(x), hn::Set(d, 39000.0F));
  const V y = near(d, hn::IfThenElseZero(is_near, x));
  if (hn::AllTrue(d, is_near)) return y;
  HWY_ALIGN float values[hn::MaxLanes(d)], results[hn::MaxLanes(d)];
  hn::Store(x, d, values);
  hn::Store(y, d, results);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) {
    if (!(std::abs(values[i]) <= 39000.0F)) results[i] = scalar(values[i]);
  }
  return hn::Load(d, results);
}

struct SafeSin {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V y = with_far_angles<std::sin>(d, x, [](D tag, V v) HWY_ATTR { return hn::Sin(tag, v); });
    return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, y);  // this keeps -0
  }
};

struct SafeCos {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return with_far_angles<std::cos>(d, x, [](D tag, V v) HWY_ATTR { return hn::Cos(tag, v); });
  }
};

// c[0] + c[1] x + c[2] x² + ..., without FMA, which only some machines have.
template <class D, class V, class T, std::size_t count>
HWY_INLINE V polynomial(D d, V x, const T (&c)[count]) {
  V sum = hn::Set(d, c[count - 1]);
  for (std::size_t i = count - 1; i-- > 0;) sum = hn::Add(hn::Mul(sum, x), hn::Set(d, c[i]));
  return sum;
}

// erf is computed by two minimax polynomials. Up to |x| = 1, one in x² approximates erf(x) / x - 1 (relative error of
// erf 1.2e-9). Up to 4, one in |x| - 2.5 approximates 1 - erf(|x|) (error 1e-8). Beyond 4, erf rounds to 1.
struct Erf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    constexpr float near[] = {0.12837916572670713F,  -0.3761262582420898F,  0.11283585148342169F,
                              -0.02685381192393132F, 0.005188327664130173F, -0.0008010193435253771F,
                              7.853860725451668e-05F};
    constexpr float far[] = {0.0004069526715165368F,  -0.0021781889169446562F, 0.005445676421791361F,
                             -0.00835171566054421F,   0.008622685796501432F,   -0.006109302921507065F,
                             0.0027973489207986316F,  -0.0005600641058423849F, -0.00025848073448061484F,
                             0.0002703980119138825F,  -8.125661309936636e-05F, -1.7681685838526052e-05F,
                             1.5767995868349082e-05F, -5.093396444128437e-07F, -8.961356672369469e-07F};
    const V one = hn::Set(d, 1.0F);
    const V size = hn::Min(hn::Abs(x), hn::Set(d, 4.0F));
    const V inner = hn::Add(x, hn::Mul(x, polynomial(d, hn::Mul(x, x), near)));
    const V outer = hn::Sub(one, polynomial(d, hn::Sub(size, hn::Set(d, 2.5F)), far));
    const V y = hn::IfThenElse(hn::Lt(size, one), inner, hn::CopySign(outer, x));
    return hn::IfThenElse(hn::IsNaN(x), x, y);
  }
};

// x to the power y, for f32 values as f64: 2^(y log2 |x|), with the sign and the special cases of C's pow.
struct Power {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V y) const {
    const hn::RebindToSigned<D> bits;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const V zero = hn::Zero(d), one = hn::Set(d, 1.0);
    // Adding this to a number well below 2^51 puts the nearest integer into the low bits.
    const V rounder = hn::Set(d, 0x1.8p52);
    const auto is_whole = [&](V v) HWY_ATTR { return hn::Eq(hn::Sub(hn::Add(v, rounder), rounder), v); };

    // Write |x| = 2^k m with m between √½ and √2. Then log m = 2 atanh f.
    const V size = hn::Abs(x);
    const auto half_root = hn::BitCast(bits, hn::Set(d, 0.70710678118654752));
    const auto k = hn::ShiftRight<52>(hn::Sub(hn::BitCast(bits, size), half_root));
    const V m = hn::BitCast(d, hn::Sub(hn::BitCast(bits, size), hn::ShiftLeft<52>(k)));
    const V f = hn::Div(hn::Sub(m, one), hn::Add(m, one));
    constexpr double atanh[] = {1.0, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11};
    const V log_m = hn::Mul(hn::Mul(f, hn::Set(d, 2 / ln2)), polynomial(d, hn::Mul(f, f), atanh));
    V log = hn::Add(hn::Sub(hn::BitCast(d, hn::Add(k, hn::BitCast(bits, rounder))), rounder), log_m);
    log = hn::IfThenElse(hn::Eq(size, zero), hn::Set(d, -infinity), log);
    log = hn::IfThenElse(hn::Eq(size, hn::Set(d, infinity)), size, log);

    // Write the power as 2^(n + r): n is added to the exponent. If |power| > 200, the result is 0 or infinite as f32.
    V power = hn::IfThenZeroElse(hn::Or(hn::Eq(log, zero), hn::Eq(y, zero)), hn::Mul(y, log));
    power = hn::Max(hn::Min(power, hn::Set(d, 200.0)), hn::Set(d, -200.0));
    const V n = hn::Add(power, rounder);
    const V r = hn::Mul(hn::Sub(power, hn::Sub(n, rounder)), hn::Set(d, ln2));
    constexpr double exp[] = {1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320};
    const V mantissa = polynomial(d, r, exp);
    V result = hn::BitCast(d, hn::Add(hn::BitCast(bits, mantissa), hn::ShiftLeft<52>(hn::BitCast(bits, n))));

    // If x is negative (or -0), odd powers are negative, and powers that are not integers are undefined.
    const auto negative = hn::Eq(hn::CopySign(one, x), hn::Set(d, -1.0));
    const auto odd = hn::AndNot(is_whole(hn::Mul(y, hn::Set(d, 0.5))), is_whole(y));
    result = hn::IfThenElse(hn::And(negative, odd), hn::Neg(result), result);
    const auto finite_below = hn::And(hn::Lt(x, zero), hn::Gt(x, hn::Set(d, -infinity)));
    const auto undefined = hn::Or(hn::Or(hn::IsNaN(x), hn::IsNaN(y)), hn::AndNot(is_whole(y), finite_below));
    result = hn::IfThenElse(undefined, hn::Set(d, std::numeric_limits<double>::quiet_NaN()), result);
    return hn::IfThenElse(hn::Or(hn::Eq(x, one), hn::Eq(y, zero)), one, result);
  }

  static constexpr double ln2 = 0.69314718055994531;
};

// The last elements are processed as a full vector, so an element's result does not depend on its position.
template <class F>
HWY_INLINE void map(std::size_t n, const float* x, float* y, F f) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(d, hn::LoadU(d, x + i)), d, y + i);
  if (i == n) return;
  HWY_ALIGN float rest[hn::MaxLanes(d)] = {};
  std::copy_n(x + i, n - i, rest);
  hn::Store(f(d, hn::Load(d, rest)), d, rest);
  std::copy_n(rest, n - i, y + i);
}

void exp_f32(std::size_t n, const float* x, float* y) { map(n, x, y, SafeExp{}); }
void log_f32(std::size_t n, const float* x, float* y) { map(n, x, y, SafeLog{}); }
void expm1_f32(std::size_t n, const float* x, float* y) { map(n, x, y, SafeExpm1{}); }
void log1p_f32(std::size_t n, const float* x, float* y) { map(n, x, y, SafeLog1p{}); }
void sin_f32(std::size_t n, const float* x, float* y) { map(n, x, y, SafeSin{}); }
void cos_f32(std::size_t n, const float* x, float* y) { map(n, x, y, SafeCos{}); }
void tanh_f32(std::size_t n, const float* x, float* y) { map(n, x, y, SafeTanh{}); }
void erf_f32(std::size_t n, const float* x, float* y) { map(n, x, y, Erf{}); }

void pow_f32(std::size_t n, const float* x, std::size_t x_step, const float* y, std::size_t y_step, float* out) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const std::size_t lanes = hn::Lanes(d);
  HWY_ALIGN float one_x[hn::MaxLanes(narrow)], one_y[hn::MaxLanes(narrow)];
  std::fill_n(one_x, lanes, x_step == 0 ? *x : 1.0F);
  std::fill_n(one_y, lanes, y_step == 0 ? *y : 1.0F);
  const auto power = [&](const float* a, const float* b) HWY_ATTR {
    const auto wide = Power{}(d, hn::PromoteTo(d, hn::LoadU(narrow, a)), hn::PromoteTo(d, hn::LoadU(narrow, b)));
    // On some machines, DemoteTo() converts values beyond the range of f32 to the largest f32. Times 2 it is infinite.
    const auto beyond = hn::Ge(hn::Abs(wide), hn::Set(d, 0x1p128));
    const auto scale = hn::IfThenElse(beyond, hn::Set(d, 2.0), hn::Set(d, 1.0));
    return hn::Mul(hn::DemoteTo(narrow, wide), hn::DemoteTo(narrow, scale));
  };
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(power(x_step == 0 ? one_x : x + i, y_step == 0 ? one_y : y + i), narrow, out + i);
  }
  if (i == n) return;
  if (x_step != 0) std::copy_n(x + i, n - i, one_x);
  if (y_step != 0) std::copy_n(y + i, n - i, one_y);
  hn::Store(power(one_x, one_y), narrow, one_x);
  std::copy_n(one_x, n - i, out + i);
}

// Adds rows to `out` for `vectors` neighbouring vectors of columns. The sums are kept in registers.
template <std::size_t vectors, class D>
HWY_INLINE void add_columns(D d, std::size_t rows, std::size_t width, const float* x, float* out) {
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<D> sums[vectors];
  for (std::size_t v = 0; v < vectors; ++v) sums[v] = hn::LoadU(d, x + v * lanes);
  for (std::size_t r = 1; r < rows; ++r) {
    for (std::size_t v = 0; v < vectors; ++v) sums[v] = hn::Add(sums[v], hn::LoadU(d, x + r * width + v * lanes));
  }
  for (std::size_t v = 0; v < vectors; ++v) {
    hn::StoreU(hn::Add(hn::LoadU(d, out + v * lanes), sums[v]), d, out + v * lanes);
  }
}

void add_rows_f32(std::size_t rows, std::size_t width, const float* x, float* out) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t j = 0;
  for (; j + 4 * lanes <= width; j += 4 * lanes) add_columns<4>(d, rows, width, x + j, out + j);
  for (; j + lanes <= width; j += lanes) add_columns<1>(d, rows, width, x + j, out + j);
  for (; j < width; ++j) add_columns<1>(one, rows, width, x + j, out + j);
}

}  // namespace HWY_NAMESPACE
}  // namespace pmaptrain
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pmaptrain {

HWY_EXPORT(exp_f32);
HWY_EXPORT(log_f32);
HWY_EXPORT(expm1_f32);
HWY_EXPORT(log1p_f32);
HWY_EXPORT(sin_f32);
HWY_EXPORT(cos_f32);
HWY_EXPORT(tanh_f32);
HWY_EXPORT(erf_f32);
HWY_EXPORT(pow_f32);
HWY_EXPORT(add_rows_f32);

void vector_exp(std::size_t n, const float* x, float* y) { HWY_DYNAMIC_DISPATCH(exp_f32)(n, x, y); }
void vector_log(std::size_t n, const float* x, float* y) { HWY_DYNAMIC_DISPATCH(log_f32)(n, x, y); }
void vector_expm1(std::size_t n, const float* x, float* y) { HWY_DYNAMIC_DISPATCH(expm1_f32)(n, x, y); }
void vector_log1p(std::size_t n, const float* x, float* y) { HWY_DYNAMIC_DISPATCH(log1p_f32)(n, x, y); }
void vector_sin(std::size_t n, const float* x, float* y) { HWY_DYNAMIC_DISPATCH(sin_f32)(n, x, y); }
void vector_cos(std::size_t n, const float* x, float* y) { HWY_DYNAMIC_DISPATCH(cos_f32)(n, x, y); }
void vector_tanh(std::size_t n, const float* x, float* y) { HWY_DYNAMIC_DISPATCH(tanh_f32)(n, x, y); }
void vector_erf(std::size_t n, const float* x, float* y) { HWY_DYNAMIC_DISPATCH(erf_f32)(n, x, y); }
void vector_pow(std::size_t n, const float* x, std::size_t x_step, const float* y, std::size_t y_step, float* out) {
  if (n > 0) HWY_DYNAMIC_DISPATCH(pow_f32)(n, x, x_step, y, y_step, out);
}
void vector_add_rows(std::size_t rows, std::size_t width, const float* x, float* out) {
  HWY_DYNAMIC_DISPATCH(add_rows_f32)(rows, width, x, out);
}

}  // namespace pmaptrain
#endif  // HWY_ONCE

#endif  // PMAPTRAIN_REFERENCE_KERNELS
