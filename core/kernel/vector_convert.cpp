// This file is compiled once for each instruction set. At run time, the best version for the CPU is chosen.
#include "core/kernel/vector_convert.h"

#ifdef PMAPTRAIN_REFERENCE_KERNELS

namespace pmaptrain {

void to_f32(std::size_t n, const bf16* x, float* y) {
  for (std::size_t i = 0; i < n; ++i) y[i] = x[i];
}

void to_bf16(std::size_t n, const float* x, bf16* y) {
  for (std::size_t i = 0; i < n; ++i) y[i] = bf16(x[i]);
}

}  // namespace pmaptrain

#else

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernel/vector_convert.cpp"
// foreach_target.h must come first: it includes this file again for each other instruction set.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pmaptrain {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Words = hn::RebindToUnsigned<Floats>;
using Halves = hn::Rebind<std::uint16_t, Words>;

void widen(std::size_t n, const bf16* x, float* y) {
  const std::size_t lanes = hn::Lanes(Floats());
  const auto* const from = reinterpret_cast<const std::uint16_t*>(x);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto words = hn::PromoteTo(Words(), hn::LoadU(Halves(), from + i));
    hn::StoreU(hn::BitCast(Floats(), hn::ShiftLeft<16>(words)), Floats(), y + i);
  }
  for (; i < n; ++i) y[i] = x[i];
}

void narrow(std::size_t n, const float* x, bf16* y) {
  const Words d;
  const std::size_t lanes = hn::Lanes(d);
  auto* const to = reinterpret_cast<std::uint16_t*>(y);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto value = hn::LoadU(Floats(), x + i);
    const auto bits = hn::BitCast(d, value);
    const auto even = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
    const auto nearest = hn::Add(hn::Add(bits, hn::Set(d, 0x7FFF)), even);
    const auto quiet = hn::Or(bits, hn::Set(d, 0x400000));
    const auto is_nan = hn::RebindMask(d, hn::IsNaN(value));
    const auto upper = hn::ShiftRight<16>(hn::IfThenElse(is_nan, quiet, nearest));
    hn::StoreU(hn::TruncateTo(Halves(), upper), Halves(), to + i);
  }
  for (; i < n; ++i) y[i] = bf16(x[i]);
}

}  // namespace HWY_NAMESPACE
}  // namespace pmaptrain
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pmaptrain {

HWY_EXPORT(widen);
HWY_EXPORT(narrow);

void to_f32(std::size_t n, const bf16* x, float* y) { HWY_DYNAMIC_DISPATCH(widen)(n, x, y); }
void to_bf16(std::size_t n, const float* x, bf16* y) { HWY_DYNAMIC_DISPATCH(narrow)(n, x, y); }

}  // namespace pmaptrain
#endif  // HWY_ONCE

#endif  // PMAPTRAIN_REFERENCE_KERNELS
