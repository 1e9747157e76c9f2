// The exponential and the hyperbolic tangent of a vector of f32, for code that is compiled once for each instruction
// set. Include this after hwy/highway.h.
#if defined(PMAPTRAIN_CORE_KERNEL_VECTOR_EXP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PMAPTRAIN_CORE_KERNEL_VECTOR_EXP_INL_H
#undef PMAPTRAIN_CORE_KERNEL_VECTOR_EXP_INL_H
#else
#define PMAPTRAIN_CORE_KERNEL_VECTOR_EXP_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace pmaptrain {
namespace HWY_NAMESPACE {

// x, but no less than -limit and no more than limit. Of NaN, x86 makes NaN, because Min and Max return their second
// operand if one is NaN; other targets make 0, which can be converted to an integer.
template <class D, class V>
HWY_INLINE V within(D d, V x, float limit) {
  namespace hn = hwy::HWY_NAMESPACE;
#if !HWY_ARCH_X86 || HWY_TARGET > HWY_SSE4
  x = hn::IfThenZeroElse(hn::IsNaN(x), x);
#endif
  return hn::Max(hn::Set(d, -limit), hn::Min(hn::Set(d, limit), x));
}

// y, or x where that is NaN, for a y that is computed from x within a limit.
template <class V>
HWY_INLINE V or_nan([[maybe_unused]] V x, V y) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSE4  // SSE4 or better
  return y;
#else
  return hwy::HWY_NAMESPACE::IfThenElse(hwy::HWY_NAMESPACE::IsNaN(x), x, y);
#endif
}

// y · 2^n, for a whole n between -151 and 151 and a y near 1. It rounds once, where the result is denormal.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3

HWY_INLINE __m128 scale_raw(__m128 y, __m128 n) { return _mm_scalef_ps(y, n); }
HWY_INLINE __m256 scale_raw(__m256 y, __m256 n) { return _mm256_scalef_ps(y, n); }
HWY_INLINE __m512 scale_raw(__m512 y, __m512 n) { return _mm512_scalef_ps(y, n); }

template <class D, class V>
HWY_INLINE V scale_by_power(D, V y, V n) {
  return V{scale_raw(y.raw, n.raw)};
}

#else

template <class D, class V>
HWY_INLINE V scale_by_power(D d, V y, V n) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<D> integers;
  const auto power = [&](auto exponent) HWY_ATTR {
    return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(exponent, hn::Set(integers, 127))));
  };
  const auto whole = hn::ConvertTo(integers, n), half = hn::ShiftRight<1>(whole);
  return hn::Mul(hn::Mul(y, power(half)), power(hn::Sub(whole, half)));
}

#endif

// c[0] + c[1] x + c[2] x² + ...
template <class D, class V, std::size_t count>
HWY_INLINE V horner(D d, V x, const float (&c)[count]) {
  namespace hn = hwy::HWY_NAMESPACE;
  V sum = hn::Set(d, c[count - 1]);
  for (std::size_t i = count - 1; i-- > 0;) sum = hn::MulAdd(sum, x, hn::Set(d, c[i]));
  return sum;
}

// exp for |x| <= 104: 2^n exp(r), where x = n ln 2 + r and |r| <= ln 2 / 2. The polynomial is the best one of its
// degree for the relative error (3.7e-9), given its first two terms; with roundings the error is below 1e-7 where there
// is FMA. It takes less than half the time of Highway's function.
template <class D, class V>
HWY_INLINE V exp_within_range(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  constexpr float terms[] = {1, 1, 0x1.FFFFFCp-2F, 0x1.555492p-3F, 0x1.5558F2p-5F, 0x1.123A20p-7F, 0x1.6A23D0p-10F};
  const V n = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504F)));
  // ln 2 in two parts: the product of n and the first one is exact.
  const V r = hn::NegMulAdd(n, hn::Set(d, -0x1.BD0106p-13F), hn::NegMulAdd(n, hn::Set(d, 0x1.63p-1F), x));
  return scale_by_power(d, horner(d, r, terms), n);
}

struct SafeExp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return or_nan(x, exp_within_range(d, within(d, x, 104.0F)));
  }
};

// For |x| < 0.55, x (1 + x² P(x²)), with the best P of its degree (relative error 3.8e-8); else 1 - 2 / (exp(2 |x|) +
// 1) with the sign of x, which rounds to 1 from 9.02 on.
struct SafeTanh {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    namespace hn = hwy::HWY_NAMESPACE;
    constexpr float terms[] = {-0x1.55545p-2F, 0x1.10CEA2p-3F, -0x1.AF7412p-5F, 0x1.0D2DFAp-6F};
    const V size = within(d, hn::Abs(x), 10.0F), one = hn::Set(d, 1.0F), square = hn::Mul(x, x);
    const V small = hn::Mul(x, hn::MulAdd(square, horner(d, square, terms), one));
    const V exp = exp_within_range(d, hn::Add(size, size));
    const V large = hn::Sub(one, hn::Div(hn::Set(d, 2.0F), hn::Add(exp, one)));
    return or_nan(x, hn::IfThenElse(hn::Lt(size, hn::Set(d, 0.55F)), small, hn::CopySign(large, x)));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace pmaptrain
HWY_AFTER_NAMESPACE();

#endif
