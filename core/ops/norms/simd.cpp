// Compiled once for each instruction set; the best one for the CPU is chosen when the program runs.
#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include "core/ops/norms/simd.h"

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
  for (std::size_t i = 0; i < n; i += norm_sums) {
    for (std::size_t v = 0; v < vectors; ++v) {
      const hn::Vec<Floats> elements = hn::LoadU(f, x + i + v * lanes);
      const hn::Vec<Doubles> wide = hn::PromoteTo(d, elements);
      sum[v] = hn::MulAdd(wide, wide, sum[v]);  // exact without rounding: the square of 24 bits fits 53 bits
      most[v] = hn::Max(most[v], hn::Abs(elements));
    }
  }
  for (std::size_t v = 0; v < vectors; ++v) {
    hn::StoreU(sum[v], d, sums + v * lanes);
    hn::StoreU(most[v], f, largest + v * lanes);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pmaptrain::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pmaptrain::ops {

HWY_EXPORT(add);

void add_norms(std::size_t n, const float* x, double* sums, float* largest) {
  HWY_DYNAMIC_DISPATCH(add)(n, x, sums, largest);
}

}  // namespace pmaptrain::ops
#endif  // HWY_ONCE

#endif  // PMAPTRAIN_REFERENCE_KERNELS
