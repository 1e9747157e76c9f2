// Compiled once for each instruction set; what is chosen when the program runs is the best that the machine has.
#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include "core/kernel/vector_math.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernel/vector_math.cpp"
// foreach_target.h comes first: it includes this file again for each other instruction set.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include <hwy/contrib/math/math-inl.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pmaptrain {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// What the library's functions leave out: arguments beyond their range, and NaN.
struct SafeExp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V y = hn::Exp(d, hn::Max(hn::Min(x, hn::Set(d, 104.0F)), hn::Set(d, -104.0F)));
    return hn::IfThenElse(hn::IsNaN(x), x, y);
  }
};

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

struct SafeTanh {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V limit = hn::Set(d, 20.0F);
    const V y = hn::Tanh(d, hn::Max(hn::Min(x, limit), hn::Neg(limit)));
    return hn::IfThenElse(hn::IsNaN(x), x, y);
  }
};

struct SafeExpm1 {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V y = hn::Expm1(d, hn::Max(hn::Min(x, hn::Set(d, 104.0F)), hn::Set(d, -104.0F)));
    // Near 0 it is x to the last bit, which keeps -0 and numbers too small to be squared.
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

// The library reduces angles up to 39000; beyond, and for what is not finite, the C library does.
template <float (*scalar)(float), class D, class V, class F>
HWY_INLINE V with_far_angles(D d, V x, F near) {
  const V y = near(d, x);
  const auto is_near = hn::Le(hn::Abs(x), hn::Set(d, 39000.0F));
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
    return with_far_angles<std::sin>(d, x, [](D tag, V v) HWY_ATTR { return hn::Sin(tag, v); });
  }
};

struct SafeCos {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return with_far_angles<std::cos>(d, x, [](D tag, V v) HWY_ATTR { return hn::Cos(tag, v); });
  }
};

// The last elements go through a whole vector too: an element meets the same instructions wherever it lies.
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

// The sums of `vectors` neighbouring vectors of columns, kept in registers.
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
HWY_EXPORT(add_rows_f32);

void vector_exp(std::size_t n, const float* x, float* y) { HWY_DYNAMIC_DISPATCH(exp_f32)(n, x, y); }
void vector_log(std::size_t n, const float* x, float* y) { HWY_DYNAMIC_DISPATCH(log_f32)(n, x, y); }
void vector_expm1(std::size_t n, const float* x, float* y) { HWY_DYNAMIC_DISPATCH(expm1_f32)(n, x, y); }
void vector_log1p(std::size_t n, const float* x, float* y) { HWY_DYNAMIC_DISPATCH(log1p_f32)(n, x, y); }
void vector_sin(std::size_t n, const float* x, float* y) { HWY_DYNAMIC_DISPATCH(sin_f32)(n, x, y); }
void vector_cos(std::size_t n, const float* x, float* y) { HWY_DYNAMIC_DISPATCH(cos_f32)(n, x, y); }
void vector_tanh(std::size_t n, const float* x, float* y) { HWY_DYNAMIC_DISPATCH(tanh_f32)(n, x, y); }
void vector_add_rows(std::size_t rows, std::size_t width, const float* x, float* out) {
  HWY_DYNAMIC_DISPATCH(add_rows_f32)(rows, width, x, out);
}

}  // namespace pmaptrain
#endif  // HWY_ONCE

#endif  // PMAPTRAIN_REFERENCE_KERNELS
