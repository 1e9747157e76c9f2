// Compiled once for each instruction set; the best one for the CPU is chosen when the program runs.
#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include "core/ops/max_pool/simd.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/ops/max_pool/simd.cpp"
// foreach_target.h comes first: it includes this file again for each other instruction set.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "core/ops/support/channels-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pmaptrain::ops {
namespace HWY_NAMESPACE {

// The elements of a window that are on the image; `row` and `column` are distances between neighbours in x.
struct PoolTaps {
  std::int64_t rows, columns, row, column;
};

// Calls f(offset of x's first tap, offset of y's element, taps) for the windows of one image.
template <class F>
HWY_INLINE void for_each_window_of(const PoolGeometry& g, std::int64_t n, const F& f) {
  for (std::int64_t oh = 0; oh < g.h.out; ++oh) {
    const std::int64_t top = n * g.h.in + g.h.start(oh) + g.h.first(oh);
    const std::int64_t rows = g.h.last(oh) - g.h.first(oh);
    for (std::int64_t ow = 0; ow < g.w.out; ++ow) {
      const std::int64_t left = g.w.start(ow) + g.w.first(ow);
      const PoolTaps taps{rows, g.w.last(ow) - g.w.first(ow), g.w.in * g.c, g.c};
      f((top * g.w.in + left) * g.c, ((n * g.h.out + oh) * g.w.out + ow) * g.c, taps);
    }
  }
}

// Converts elements to f32, and back if bf16 can represent them exactly.
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const bf16* from) {
  const hn::RebindToUnsigned<D> words;
  const hn::Rebind<std::uint16_t, D> halves;
  const auto bits = hn::PromoteTo(words, hn::LoadU(halves, reinterpret_cast<const std::uint16_t*>(from)));
  return hn::BitCast(d, hn::ShiftLeft<16>(bits));
}
template <class D>
HWY_INLINE void store(hn::Vec<D> x, D d, float* to) {
  hn::StoreU(x, d, to);
}
template <class D>
HWY_INLINE void store(hn::Vec<D> x, D, bf16* to) {
  const hn::RebindToUnsigned<D> words;
  const hn::Rebind<std::uint16_t, D> halves;
  hn::StoreU(hn::TruncateTo(halves, hn::ShiftRight<16>(hn::BitCast(words, x))), halves,
             reinterpret_cast<std::uint16_t*>(to));
}

// Whether a value replaces the best one so far. Of equal values, and of NaNs, the first is kept.
template <class D, class V>
HWY_INLINE auto wins(D, V tap, V best) {
  return hn::And(hn::Not(hn::Le(tap, best)), hn::Eq(best, best));
}

template <class D, class T>
HWY_INLINE void pool_window(D d, const T* x, T* y, const PoolTaps& taps) {
  auto best = load(d, x);
  auto nan = hn::IsNaN(best);
  for (std::int64_t i = 0; i < taps.rows; ++i) {
    for (std::int64_t j = 0; j < taps.columns; ++j) {
      const auto tap = load(d, x + i * taps.row + j * taps.column);
      best = hn::IfThenElse(hn::Gt(tap, best), tap, best);
      nan = hn::Or(nan, hn::IsNaN(tap));
    }
  }
  store(hn::IfThenElse(nan, hn::Set(d, std::numeric_limits<float>::quiet_NaN()), best), d, y);
}

// The most common window size, unrolled.
template <class D, class T>
HWY_INLINE void pool_2x2(D d, const T* x, T* y, const PoolTaps& taps) {
  const auto a = load(d, x), b = load(d, x + taps.column);
  const auto c = load(d, x + taps.row), e = load(d, x + taps.row + taps.column);
  const auto ab = hn::IfThenElse(hn::Gt(b, a), b, a), ce = hn::IfThenElse(hn::Gt(e, c), e, c);
  const auto best = hn::IfThenElse(hn::Gt(ce, ab), ce, ab);
  const auto nan = hn::Or(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), hn::Or(hn::IsNaN(c), hn::IsNaN(e)));
  store(hn::IfThenElse(nan, hn::Set(d, std::numeric_limits<float>::quiet_NaN()), best), d, y);
}

// Adds to dx. Taps are counted in integers because floats are exact only up to 2^24. -1 stands for no tap.
template <class D, class T>
HWY_INLINE void grad_window(D d, const T* x, const T* dy, T* dx, const PoolTaps& taps, bool relu) {
  const hn::RebindToSigned<D> places;
  auto best = load(d, x);
  auto winner = hn::Zero(places);
  auto index = hn::Zero(places);
  const auto one = hn::Set(places, 1);
  for (std::int64_t i = 0; i < taps.rows; ++i) {
    for (std::int64_t j = 0; j < taps.columns; ++j) {
      const auto tap = load(d, x + i * taps.row + j * taps.column);
      const auto better = wins(d, tap, best);
      best = hn::IfThenElse(better, tap, best);
      winner = hn::IfThenElse(hn::RebindMask(places, better), index, winner);
      index = hn::Add(index, one);
    }
  }
  if (relu) {
    const auto passes = hn::RebindMask(places, hn::Gt(best, hn::Zero(d)));
    winner = hn::IfThenElse(passes, winner, hn::Set(places, -1));
  }
  const auto cotangent = load(d, dy);
  index = hn::Zero(places);
  for (std::int64_t i = 0; i < taps.rows; ++i) {
    for (std::int64_t j = 0; j < taps.columns; ++j) {
      T* const to = dx + i * taps.row + j * taps.column;
      const auto wins_here = hn::RebindMask(d, hn::Eq(winner, index));
      store(hn::Add(load(d, to), hn::IfThenElseZero(wins_here, cotangent)), d, to);
      index = hn::Add(index, one);
    }
  }
}

// Writes dx, for windows that do not overlap.
template <class D, class T>
HWY_INLINE void grad_2x2(D d, const T* x, const T* dy, T* dx, const PoolTaps& taps, bool relu) {
  auto best = load(d, x);
  const auto b = load(d, x + taps.column);
  const auto c = load(d, x + taps.row);
  const auto e = load(d, x + taps.row + taps.column);
  const auto b_wins = wins(d, b, best);
  best = hn::IfThenElse(b_wins, b, best);
  const auto c_wins = wins(d, c, best);
  best = hn::IfThenElse(c_wins, c, best);
  const auto e_wins = wins(d, e, best);
  best = hn::IfThenElse(e_wins, e, best);
  // The part of the cotangent that no later tap has taken.
  auto rest = load(d, dy);
  if (relu) rest = hn::IfThenElseZero(hn::Gt(best, hn::Zero(d)), rest);
  store(hn::IfThenElseZero(e_wins, rest), d, dx + taps.row + taps.column);
  rest = hn::IfThenZeroElse(e_wins, rest);
  store(hn::IfThenElseZero(c_wins, rest), d, dx + taps.row);
  rest = hn::IfThenZeroElse(c_wins, rest);
  store(hn::IfThenElseZero(b_wins, rest), d, dx + taps.column);
  store(hn::IfThenZeroElse(b_wins, rest), d, dx);
}

// Lambdas do not inherit the target instruction set of the enclosing function, so each one states it.
template <class T>
void pool_all(const PoolGeometry& g, const T* x, T* y) {
  for (std::int64_t n = 0; n < g.n; ++n) {
    for_each_window_of(g, n, [&](std::int64_t at_x, std::int64_t at_y, const PoolTaps& taps) HWY_ATTR {
      if (taps.rows == 2 && taps.columns == 2) {
        for_each_vector(g.c, [&](auto d, std::int64_t c) HWY_ATTR { pool_2x2(d, x + at_x + c, y + at_y + c, taps); });
      } else {
        for_each_vector(g.c,
                        [&](auto d, std::int64_t c) HWY_ATTR { pool_window(d, x + at_x + c, y + at_y + c, taps); });
      }
    });
  }
}

template <class T>
void pool_grad_all(const PoolGeometry& g, const T* x, const T* dy, T* dx, bool relu) {
  const bool apart = windows_are_apart(g);
  const bool tiles = g.h.window == 2 && g.w.window == 2 && g.h.in == 2 * g.h.out && g.w.in == 2 * g.w.out &&
                     g.h.stride == 2 && g.w.stride == 2 && g.h.low == 0 && g.w.low == 0;
  const std::int64_t image = g.h.in * g.w.in * g.c;
  for (std::int64_t n = 0; n < g.n; ++n) {
    if (!tiles) std::fill_n(dx + n * image, image, T{0});
    for_each_window_of(g, n, [&](std::int64_t at_x, std::int64_t at_y, const PoolTaps& taps) HWY_ATTR {
      if (apart && taps.rows == 2 && taps.columns == 2) {
        for_each_vector(g.c, [&](auto d, std::int64_t c)
                                 HWY_ATTR { grad_2x2(d, x + at_x + c, dy + at_y + c, dx + at_x + c, taps, relu); });
      } else {
        for_each_vector(g.c, [&](auto d, std::int64_t c)
                                 HWY_ATTR { grad_window(d, x + at_x + c, dy + at_y + c, dx + at_x + c, taps, relu); });
      }
    });
  }
}

void pool(const PoolGeometry& g, const float* x, float* y) { pool_all(g, x, y); }
void pool_bf16(const PoolGeometry& g, const bf16* x, bf16* y) { pool_all(g, x, y); }
void pool_grad(const PoolGeometry& g, const float* x, const float* dy, float* dx, bool relu) {
  pool_grad_all(g, x, dy, dx, relu);
}
void pool_grad_bf16(const PoolGeometry& g, const bf16* x, const bf16* dy, bf16* dx, bool relu) {
  pool_grad_all(g, x, dy, dx, relu);
}

}  // namespace HWY_NAMESPACE
}  // namespace pmaptrain::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pmaptrain::ops {

HWY_EXPORT(pool);
HWY_EXPORT(pool_bf16);
HWY_EXPORT(pool_grad);
HWY_EXPORT(pool_grad_bf16);

bool windows_are_apart(const PoolGeometry& g) { return g.h.stride >= g.h.window && g.w.stride >= g.w.window; }

void max_pool_simd(const PoolGeometry& g, const float* x, float* y) { HWY_DYNAMIC_DISPATCH(pool)(g, x, y); }

void max_pool_simd(const PoolGeometry& g, const bf16* x, bf16* y) { HWY_DYNAMIC_DISPATCH(pool_bf16)(g, x, y); }

void max_pool_grad_simd(const PoolGeometry& g, const float* x, const float* dy, float* dx, bool relu) {
  HWY_DYNAMIC_DISPATCH(pool_grad)(g, x, dy, dx, relu);
}

void max_pool_grad_simd(const PoolGeometry& g, const bf16* x, const bf16* dy, bf16* dx, bool relu) {
  HWY_DYNAMIC_DISPATCH(pool_grad_bf16)(g, x, dy, dx, relu);
}

}  // namespace pmaptrain::ops
#endif  // HWY_ONCE

#endif  // PMAPTRAIN_REFERENCE_KERNELS
