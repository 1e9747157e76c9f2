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

HWY_INLINE hn::Vec<Floats> load(const float* x) { return hn::LoadU(Floats(), x); }

HWY_INLINE hn::Vec<Floats> load(const bf16* x) {
  const auto words = hn::PromoteTo(Words(), hn::LoadU(Halves(), reinterpret_cast<const std::uint16_t*>(x)));
  return hn::BitCast(Floats(), hn::ShiftLeft<16>(words));
}

HWY_INLINE void store(hn::Vec<Floats> value, float* y) { hn::StoreU(value, Floats(), y); }

HWY_INLINE void store(hn::Vec<Floats> value, bf16* y) {
  const Words d;
  const auto bits = hn::BitCast(d, value);
  const auto even = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
  const auto nearest = hn::Add(hn::Add(bits, hn::Set(d, 0x7FFF)), even);
  const auto quiet = hn::Or(bits, hn::Set(d, 0x400000));
  const auto is_nan = hn::RebindMask(d, hn::IsNaN(value));
  const auto upper = hn::ShiftRight<16>(hn::IfThenElse(is_nan, quiet, nearest));
  hn::StoreU(hn::TruncateTo(Halves(), upper), Halves(), reinterpret_cast<std::uint16_t*>(y));
}

template <class From, class To>
HWY_INLINE void copy_row(std::size_t n, const From* x, To* y) {
  const std::size_t lanes = hn::Lanes(Floats());
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) store(load(x + i), y + i);
  for (; i < n; ++i) y[i] = To(x[i]);
}

template <class From, class To>
HWY_INLINE void copy_all(std::size_t rows, std::size_t n, const From* x, std::size_t x_row, To* y, std::size_t y_row) {
  for (std::size_t r = 0; r < rows; ++r) copy_row(n, x + r * x_row, y + r * y_row);
}

void rows_of_f32(std::size_t rows, std::size_t n, const float* x, std::size_t x_row, float* y, std::size_t y_row) {
  copy_all(rows, n, x, x_row, y, y_row);
}
void widen_rows(std::size_t rows, std::size_t n, const bf16* x, std::size_t x_row, float* y, std::size_t y_row) {
  copy_all(rows, n, x, x_row, y, y_row);
}
void narrow_rows(std::size_t rows, std::size_t n, const float* x, std::size_t x_row, bf16* y, std::size_t y_row) {
  copy_all(rows, n, x, x_row, y, y_row);
}

}  // namespace HWY_NAMESPACE
}  // namespace pmaptrain
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pmaptrain {

HWY_EXPORT(rows_of_f32);
HWY_EXPORT(widen_rows);
HWY_EXPORT(narrow_rows);

void to_f32(std::size_t n, const bf16* x, float* y) { copy_rows(1, n, x, n, y, n); }
void to_bf16(std::size_t n, const float* x, bf16* y) { copy_rows(1, n, x, n, y, n); }

void copy_rows(std::size_t rows, std::size_t n, const float* x, std::size_t x_row, float* y, std::size_t y_row) {
  HWY_DYNAMIC_DISPATCH(rows_of_f32)(rows, n, x, x_row, y, y_row);
}
void copy_rows(std::size_t rows, std::size_t n, const bf16* x, std::size_t x_row, float* y, std::size_t y_row) {
  HWY_DYNAMIC_DISPATCH(widen_rows)(rows, n, x, x_row, y, y_row);
}
void copy_rows(std::size_t rows, std::size_t n, const float* x, std::size_t x_row, bf16* y, std::size_t y_row) {
  HWY_DYNAMIC_DISPATCH(narrow_rows)(rows, n, x, x_row, y, y_row);
}

}  // namespace pmaptrain
#endif  // HWY_ONCE

#endif  // PMAPTRAIN_REFERENCE_KERNELS
