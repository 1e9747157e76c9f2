// This file is compiled once for each instruction set. At run time, the best version for the CPU is chosen.
#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include "core/kernel/vector_normal.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernel/vector_normal.cpp"
// foreach_target.h must come first: it includes this file again for each other instruction set.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pmaptrain {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

// The scalar target has no products of 64 bits, so it calls the scalar function.
void truncated_normals(PhiloxKey key, std::uint64_t first, std::size_t n, double scale, float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<float>(scale * truncated_normal(key, first + i));
}

void normals(std::size_t n, const std::uint32_t* a, const std::uint32_t* b, float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = normal_from_bits(a[i], b[i]);
}

void normal_parts(std::size_t n, const std::uint32_t* a, const std::uint32_t* b, double* radius, double* cosine,
                  double* sine) {
  for (std::size_t i = 0; i < n; ++i) {
    const double largest = normal_pair(0, 0)[0];
    radius[i] = normal_pair(a[i], 0)[0];
    cosine[i] = normal_pair(0, b[i])[0] / largest;
    sine[i] = normal_pair(0, b[i])[1] / largest;
  }
}

#else

using Reals = hn::ScalableTag<double>;
// One word of Philox for each real, in the low half of its lane. The high half may have any bits.
using Words = hn::RebindToUnsigned<Reals>;
using Real = hn::Vec<Reals>;
using Word = hn::Vec<Words>;

HWY_INLINE Word low_half(Word x) { return hn::And(x, hn::Set(Words(), 0xFFFFFFFFu)); }

// The low half less `offset`, exactly: beside the exponent of 2^52, the bits of an integer are those of the sum.
HWY_INLINE Real to_real(Word x, double offset) {
  const Word sum = hn::Or(low_half(x), hn::Set(Words(), 0x4330000000000000u));
  return hn::Sub(hn::BitCast(Reals(), sum), hn::Set(Reals(), 0x1p52 + offset));
}

HWY_INLINE Word product(Word x, std::uint32_t factor) {
  const hn::Repartition<std::uint32_t, Words> halves;
  return hn::MulEven(hn::BitCast(halves, x), hn::Set(halves, factor));
}

// Words 0 and 1 of philox4x32(key, {0, 0, low half of index, high half of index}) (Salmon et al., 2011).
HWY_INLINE void encipher(PhiloxKey key, Word index, Word& first, Word& second) {
  const Words d;
  Word c0 = hn::Zero(d), c1 = hn::Zero(d), c2 = index, c3 = hn::ShiftRight<32>(index);
  for (std::uint32_t round = 0; round < 10; ++round) {
    const Word key0 = hn::Set(d, key[0] + round * 0x9E3779B9u), key1 = hn::Set(d, key[1] + round * 0xBB67AE85u);
    const Word product0 = product(c0, 0xD2511F53u), product1 = product(c2, 0xCD9E8D57u);
    c0 = hn::Xor3(hn::ShiftRight<32>(product1), c1, key0);
    c1 = product1;
    c2 = hn::Xor3(hn::ShiftRight<32>(product0), c3, key1);
    c3 = product0;
  }
  first = c0;
  second = c1;
}

// c[0] + c[1] x + c[2] x² + ...
template <std::size_t count>
HWY_INLINE Real polynomial(Real x, const double (&c)[count]) {
  const Reals d;
  Real sum = hn::Set(d, c[count - 1]);
  for (std::size_t i = count - 1; i-- > 0;) sum = hn::MulAdd(sum, x, hn::Set(d, c[i]));
  return sum;
}

// √(-2 log u) for u = (a + 1) / 2^32. Write u = 2^-n m with m between √½ and √2. Then log m = 2 atanh f, and a minimax
// polynomial in f² approximates (atanh(f) / f - 1) / f² (relative error of atanh 2^-51).
HWY_INLINE Real radius_of(Word a) {
  constexpr double ln2 = 0.69314718055994531;
  constexpr double atanh[] = {0.33333333333295373, 0.20000000025447448, 0.14285708658532503,
                              0.11111680070866331, 0.09061986624696612, 0.0840812060649983};
  const Reals d;
  const Words bits;
  const Real one = hn::Set(d, 1.0);
  const Word x = hn::BitCast(bits, to_real(a, -1.0));
  const Word k = hn::ShiftRight<52>(hn::Sub(x, hn::BitCast(bits, hn::Set(d, 0.70710678118654752))));
  const Real m = hn::BitCast(d, hn::Sub(x, hn::ShiftLeft<52>(k)));
  const Real f = hn::Div(hn::Sub(m, one), hn::Add(m, one));
  const Real square = hn::Mul(f, f);
  const Real log_m = hn::MulAdd(hn::Mul(f, square), polynomial(square, atanh), f);  // half of it
  const Real minus_n = to_real(k, 32.0);
  return hn::Sqrt(hn::NegMulAdd(minus_n, hn::Set(d, 2 * ln2), hn::Mul(log_m, hn::Set(d, -4.0))));
}

// cos(2π b / 2^32) = sin(π/2 y), where y from -1 to 1 is exact. A minimax polynomial in y² approximates sin(π/2 y) / y
// (error of the sine 2^-53).
HWY_INLINE Real cosine_of(Word b) {
  constexpr double sine[] = {1.5707963267948952,    -0.6459640975061781,    0.07969262624518758,
                             -0.004681754129062433, 0.00016044116369603765, -3.59880299072656e-06,
                             5.687801953574506e-08, -6.43567247195858e-10};
  const Reals d;
  const Real quarter = hn::Set(d, 0x1p30);
  const Real y = hn::Mul(hn::Sub(hn::Abs(to_real(b, 0x1p31)), quarter), hn::Set(d, 0x1p-30));
  return hn::Mul(y, polynomial(hn::Mul(y, y), sine));
}

HWY_INLINE Real sine_of(Word b) { return cosine_of(hn::Sub(b, hn::Set(Words(), 0x40000000u))); }

// Normal values times a scale, as floats. The masks tell for which of them the float is certain, and which are
// certainly within the range or beyond it.
struct Judged {
  hn::Vec<hn::Rebind<float, Reals>> value;
  hn::Mask<Reals> sure, within, beyond;  // at most 2 in absolute value before they are scaled, or more
};

HWY_INLINE Judged judge(Real radius, Real cosine, double scale) {
  const Reals d;
  const hn::Rebind<float, Reals> narrow;
  const Real two = hn::Set(d, 2.0), factor = hn::Set(d, scale);
  // The second term is for a radius of 0: the sign of the result is then in doubt.
  const Real error = hn::MulAdd(radius, hn::Set(d, normal_doubt), hn::Set(d, 0x1p-60));
  const Real normal = hn::Mul(radius, cosine);
  const auto least = hn::DemoteTo(narrow, hn::Mul(hn::Sub(normal, error), factor));
  const auto most = hn::DemoteTo(narrow, hn::Mul(hn::Add(normal, error), factor));
  const Real size = hn::Abs(normal);
  return {least, hn::Eq(hn::PromoteTo(d, least), hn::PromoteTo(d, most)), hn::Le(hn::Add(size, error), two),
          hn::Gt(hn::Sub(size, error), two)};
}

constexpr std::size_t lanes_at_most = hn::MaxLanes(Reals());

// Elements to which the first normal value of their sequence does not give a float. A radius that is not a number says
// that it is in doubt whether it does.
struct Others {
  static constexpr std::size_t block = 512;
  HWY_ALIGN std::uint64_t index[block + lanes_at_most], b[block + lanes_at_most];
  HWY_ALIGN double radius[block + lanes_at_most];
  std::size_t count = 0;
};

// Gives the others the second value of their sequence, which has the sine of the same angle; or calls scalar(index).
template <class F>
HWY_INLINE void draw_others(Others& others, double scale, float* out, F scalar) {
  const Reals d;
  const Words words;
  const hn::Rebind<float, Reals> narrow;
  const std::size_t lanes = hn::Lanes(d);
  std::fill_n(others.radius + others.count, lanes, 0.0);
  std::fill_n(others.b + others.count, lanes, 0u);
  for (std::size_t i = 0; i < others.count; i += lanes) {
    const Judged judged = judge(hn::Load(d, others.radius + i), sine_of(hn::Load(words, others.b + i)), scale);
    HWY_ALIGN float values[lanes_at_most];
    HWY_ALIGN double taken[lanes_at_most];
    hn::Store(judged.value, narrow, values);
    hn::Store(hn::IfThenElseZero(hn::And(judged.sure, judged.within), hn::Set(d, 1.0)), d, taken);
    for (std::size_t j = 0; j < std::min(lanes, others.count - i); ++j) {
      const std::uint64_t index = others.index[i + j];
      out[index] = taken[j] != 0 ? values[j] : scalar(index);
    }
  }
}

void truncated_normals(PhiloxKey key, std::uint64_t first, std::size_t n, double scale, float* out) {
  const Reals d;
  const Words words;
  const hn::Rebind<float, Reals> narrow;
  const std::size_t lanes = hn::Lanes(d);
  const Real nothing = hn::NaN(d);
  HWY_ALIGN float values[Others::block + lanes_at_most];
  Others others;
  for (std::size_t begin = 0; begin < n; begin += Others::block) {
    const std::size_t count = std::min(Others::block, n - begin);
    others.count = 0;
    for (std::size_t i = 0; i < count; i += lanes) {
      const Word index = hn::Iota(words, i);
      Word a, b;
      encipher(key, hn::Add(index, hn::Set(words, first + begin)), a, b);
      const Real radius = radius_of(a);
      const Judged judged = judge(radius, cosine_of(b), scale);
      hn::Store(judged.value, narrow, values + i);
      const auto taken = hn::And(judged.sure, judged.within);
      if (hn::AllTrue(d, taken)) continue;
      const auto rest = hn::Not(taken);
      const Real known = hn::IfThenElse(judged.beyond, radius, nothing);
      hn::CompressStore(index, hn::RebindMask(words, rest), words, others.index + others.count);
      hn::CompressStore(b, hn::RebindMask(words, rest), words, others.b + others.count);
      others.count += hn::CompressStore(known, rest, d, others.radius + others.count);
    }
    draw_others(others, scale, values, [&](std::uint64_t index) {
      return static_cast<float>(scale * truncated_normal(key, first + begin + index));
    });
    std::copy_n(values, count, out + begin);
  }
}

// Calls f(first index, number of elements, words of a, words of b) for each vector.
template <class F>
HWY_INLINE void for_pairs(std::size_t n, const std::uint32_t* a, const std::uint32_t* b, F f) {
  const Words words;
  const std::size_t lanes = hn::Lanes(words);
  for (std::size_t i = 0; i < n; i += lanes) {
    const std::size_t count = std::min(lanes, n - i);
    HWY_ALIGN std::uint64_t wide[2][lanes_at_most] = {};
    std::copy_n(a + i, count, wide[0]);
    std::copy_n(b + i, count, wide[1]);
    f(i, count, hn::Load(words, wide[0]), hn::Load(words, wide[1]));
  }
}

void normals(std::size_t n, const std::uint32_t* a, const std::uint32_t* b, float* out) {
  const Reals d;
  const hn::Rebind<float, Reals> narrow;
  for_pairs(n, a, b, [&](std::size_t i, std::size_t count, Word first, Word second) HWY_ATTR {
    const Judged judged = judge(radius_of(first), cosine_of(second), 1.0);
    HWY_ALIGN float values[lanes_at_most];
    hn::Store(judged.value, narrow, values);
    std::copy_n(values, count, out + i);
    if (hn::AllTrue(d, judged.sure)) return;
    HWY_ALIGN double sure[lanes_at_most];
    hn::Store(hn::IfThenElseZero(judged.sure, hn::Set(d, 1.0)), d, sure);
    for (std::size_t j = 0; j < count; ++j) {
      if (sure[j] == 0) out[i + j] = normal_from_bits(a[i + j], b[i + j]);
    }
  });
}

void normal_parts(std::size_t n, const std::uint32_t* a, const std::uint32_t* b, double* radius, double* cosine,
                  double* sine) {
  const Reals d;
  for_pairs(n, a, b, [&](std::size_t i, std::size_t count, Word first, Word second) HWY_ATTR {
    HWY_ALIGN double results[3][lanes_at_most];
    hn::Store(radius_of(first), d, results[0]);
    hn::Store(cosine_of(second), d, results[1]);
    hn::Store(sine_of(second), d, results[2]);
    std::copy_n(results[0], count, radius + i);
    std::copy_n(results[1], count, cosine + i);
    std::copy_n(results[2], count, sine + i);
  });
}

#endif  // HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace pmaptrain
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pmaptrain {

HWY_EXPORT(truncated_normals);
HWY_EXPORT(normals);
HWY_EXPORT(normal_parts);

void vector_truncated_normals(PhiloxKey key, std::uint64_t first, std::size_t n, double scale, float* out) {
  HWY_DYNAMIC_DISPATCH(truncated_normals)(key, first, n, scale, out);
}

void vector_normals(std::size_t n, const std::uint32_t* a, const std::uint32_t* b, float* out) {
  HWY_DYNAMIC_DISPATCH(normals)(n, a, b, out);
}

void vector_normal_parts(std::size_t n, const std::uint32_t* a, const std::uint32_t* b, double* radius, double* cosine,
                         double* sine) {
  HWY_DYNAMIC_DISPATCH(normal_parts)(n, a, b, radius, cosine, sine);
}

}  // namespace pmaptrain
#endif  // HWY_ONCE

#endif  // PMAPTRAIN_REFERENCE_KERNELS
