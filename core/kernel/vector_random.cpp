// Compiled once for each instruction set; what is chosen when the program runs is the best that the machine has.
#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include "core/kernel/vector_random.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernel/vector_random.cpp"
// foreach_target.h comes first: it includes this file again for each other instruction set.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pmaptrain {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

// No lanes, no pairs of them.
void philox(PhiloxKey key, std::size_t n, const std::uint32_t* c0, const std::uint32_t* c1, const std::uint32_t* c2,
            std::uint32_t* first, std::uint32_t* second) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto words = philox4x32(key, {c0[i], c1[i], c2[i], 0});
    first[i] = words[0];
    second[i] = words[1];
  }
}

#else

using Words = hn::ScalableTag<std::uint32_t>;
using Pairs = hn::Repartition<std::uint64_t, Words>;
using Vector = hn::Vec<Words>;

// Philox-4x32-10 (Salmon et al., 2011) of the counters in the even lanes. A product of two words takes an even lane and
// the odd one beside it: its low word stays where it is, so nothing is shuffled, and odd lanes hold what nobody reads.
HWY_INLINE void encipher_even(PhiloxKey key, Vector& c0, Vector& c1, Vector& c2, Vector& c3) {
  const Words d;
  const Vector factor0 = hn::Set(d, 0xD2511F53u), factor1 = hn::Set(d, 0xCD9E8D57u);
  for (int round = 0; round < 10; ++round) {
    const auto product0 = hn::MulEven(c0, factor0), product1 = hn::MulEven(c2, factor1);
    const Vector high0 = hn::BitCast(d, hn::ShiftRight<32>(product0));
    const Vector high1 = hn::BitCast(d, hn::ShiftRight<32>(product1));
    c0 = hn::Xor(hn::Xor(high1, c1), hn::Set(d, key[0]));
    c1 = hn::BitCast(d, product1);
    c2 = hn::Xor(hn::Xor(high0, c3), hn::Set(d, key[1]));
    c3 = hn::BitCast(d, product0);
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
}

HWY_INLINE Vector odd_to_even(Vector words) {
  return hn::BitCast(Words(), hn::ShiftRight<32>(hn::BitCast(Pairs(), words)));
}

// What lies in the even lanes of both: of `even` there, of `odd` beside it.
HWY_INLINE Vector interleave(Vector even, Vector odd) {
  return hn::OddEven(hn::BitCast(Words(), hn::ShiftLeft<32>(hn::BitCast(Pairs(), odd))), even);
}

HWY_INLINE void encipher(PhiloxKey key, const std::uint32_t* c0, const std::uint32_t* c1, const std::uint32_t* c2,
                         std::uint32_t* first, std::uint32_t* second) {
  const Words d;
  Vector even[4] = {hn::LoadU(d, c0), hn::LoadU(d, c1), hn::LoadU(d, c2), hn::Zero(d)};
  Vector odd[4] = {odd_to_even(even[0]), odd_to_even(even[1]), odd_to_even(even[2]), hn::Zero(d)};
  encipher_even(key, even[0], even[1], even[2], even[3]);
  encipher_even(key, odd[0], odd[1], odd[2], odd[3]);
  hn::StoreU(interleave(even[0], odd[0]), d, first);
  hn::StoreU(interleave(even[1], odd[1]), d, second);
}

void philox(PhiloxKey key, std::size_t n, const std::uint32_t* c0, const std::uint32_t* c1, const std::uint32_t* c2,
            std::uint32_t* first, std::uint32_t* second) {
  const std::size_t lanes = hn::Lanes(Words());
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) encipher(key, c0 + i, c1 + i, c2 + i, first + i, second + i);
  if (i == n) return;
  constexpr std::size_t most = hn::MaxLanes(Words());
  std::uint32_t counters[3][most] = {}, words[2][most];
  std::copy_n(c0 + i, n - i, counters[0]);
  std::copy_n(c1 + i, n - i, counters[1]);
  std::copy_n(c2 + i, n - i, counters[2]);
  encipher(key, counters[0], counters[1], counters[2], words[0], words[1]);
  std::copy_n(words[0], n - i, first + i);
  std::copy_n(words[1], n - i, second + i);
}

#endif  // HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace pmaptrain
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pmaptrain {

HWY_EXPORT(philox);

void vector_philox(PhiloxKey key, std::size_t n, const std::uint32_t* c0, const std::uint32_t* c1,
                   const std::uint32_t* c2, std::uint32_t* first, std::uint32_t* second) {
  HWY_DYNAMIC_DISPATCH(philox)(key, n, c0, c1, c2, first, second);
}

}  // namespace pmaptrain
#endif  // HWY_ONCE

#endif  // PMAPTRAIN_REFERENCE_KERNELS
