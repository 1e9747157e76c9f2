// Compiled once for each instruction set; the best one for the CPU is chosen when the program runs.
#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include "core/ops/norms/simd.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/ops/norms/simd.cpp"
// foreach_target.h comes first: it includes this file again for each other instruction set.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pmaptrain::ops {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Vectors of floats are half as long as vectors of doubles, so that each load converts to one vector of sums.
constexpr std::size_t most_doubles = 8;
using Doubles = hn::CappedTag<double, most_doubles>;
using Floats = hn::Rebind<float, Doubles>;

// Each vector of sums has its own register, if there are enough.
constexpr std::size_t vectors = norm_sums / HWY_MAX(std::size_t{1}, hn::MaxLanes(Doubles()));

// Adds n elements to the sums.
HWY_INLINE void add_to(std::size_t n, const float* x, hn::Vec<Doubles>* sum, hn::Vec<Floats>* most) {
  const Doubles d;
  const Floats f;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = 0; i < n; i += norm_sums) {
    for (std::size_t v = 0; v < vectors; ++v) {
      const hn::Vec<Floats> elements = hn::LoadU(f, x + i + v * lanes);
      const hn::Vec<Doubles> wide = hn::PromoteTo(d, elements);
      sum[v] = hn::MulAdd(wide, wide, sum[v]);  // exact without rounding: the square of 24 bits fits 53 bits
      most[v] = hn::Max(most[v], hn::Abs(elements));
    }
  }
}

void add(std::size_t n, const float* x, double* sums, float* largest) {
  const Doubles d;
  const Floats f;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<Doubles> sum[vectors];
  hn::Vec<Floats> most[vectors];
  for (std::size_t v = 0; v < vectors; ++v) {
    sum[v] = hn::LoadU(d, sums + v * lanes);
    most[v] = hn::LoadU(f, largest + v * lanes);
  }
  add_to(n, x, sum, most);
  for (std::size_t v = 0; v < vectors; ++v) {
    hn::StoreU(sum[v], d, sums + v * lanes);
    hn::StoreU(most[v], f, largest + v * lanes);
  }
}

// The sums stay in registers until one vector of them is left. Without a NaN, the largest magnitude is the same in any
// order; with one, it is the sum.
void rows(std::size_t count, std::size_t n, const float* x, double* squares, float* largest) {
  const Doubles d;
  const Floats f;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t row = 0; row < count; ++row) {
    hn::Vec<Doubles> sum[vectors];
    hn::Vec<Floats> most[vectors];
    for (std::size_t v = 0; v < vectors; ++v) {
      sum[v] = hn::Zero(d);
      most[v] = hn::Zero(f);
    }
    add_to(n, x + row * n, sum, most);
    for (std::size_t half = vectors / 2; half > 0; half /= 2) {
      for (std::size_t v = 0; v < half; ++v) {
        sum[v] = hn::Add(sum[v], sum[v + half]);
        most[v] = hn::Max(most[v], most[v + half]);
      }
    }
    HWY_ALIGN double sums[most_doubles];
    hn::Store(sum[0], d, sums);
    for (std::size_t half = lanes / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) sums[i] += sums[i + half];
    }
    squares[row] = sums[0];
    largest[row] = std::isnan(sums[0]) ? static_cast<float>(sums[0]) : hn::GetLane(hn::MaxOfLanes(f, most[0]));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pmaptrain::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pmaptrain::ops {

HWY_EXPORT(add);
HWY_EXPORT(rows);

void add_norms(std::size_t n, const float* x, double* sums, float* largest) {
  HWY_DYNAMIC_DISPATCH(add)(n, x, sums, largest);
}

void norms_of_rows(std::size_t rows, std::size_t n, const float* x, double* squares, float* largest) {
  HWY_DYNAMIC_DISPATCH(rows)(rows, n, x, squares, largest);
}

}  // namespace pmaptrain::ops
#endif  // HWY_ONCE

#endif  // PMAPTRAIN_REFERENCE_KERNELS
