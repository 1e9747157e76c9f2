// This file is compiled once for each instruction set. At run time, the best version for the CPU is chosen.
#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include "core/kernel/vector_random.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernel/vector_random.cpp"
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

// The scalar target has no pairs of lanes, so it computes one counter at a time.
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
using Vector = hn::Vec<Words>;

// Four words of each counter. Only the even lanes are used.
struct Block {
  Vector c0, c1, c2, c3;
};

// One round of Philox-4x32 (Salmon et al., 2011). The product of two even lanes is 64 bits wide: its low word is in the
// even lane, its high word in the odd lane beside it.
HWY_INLINE void encipher_round(Vector key0, Vector key1, Block& block) {
  const Words d;
  const Vector product0 = hn::BitCast(d, hn::MulEven(block.c0, hn::Set(d, 0xD2511F53u)));
  const Vector product1 = hn::BitCast(d, hn::MulEven(block.c2, hn::Set(d, 0xCD9E8D57u)));
  block = {hn::Xor3(hn::DupOdd(product1), block.c1, key0), product1, hn::Xor3(hn::DupOdd(product0), block.c3, key1),
           product0};
}

HWY_INLINE void encipher(PhiloxKey key, const std::uint32_t* c0, const std::uint32_t* c1, const std::uint32_t* c2,
                         std::uint32_t* first, std::uint32_t* second) {
  const Words d;
  Block even{hn::LoadU(d, c0), hn::LoadU(d, c1), hn::LoadU(d, c2), hn::Zero(d)};
  Block odd{hn::DupOdd(even.c0), hn::DupOdd(even.c1), hn::DupOdd(even.c2), hn::Zero(d)};
  Vector key0 = hn::Set(d, key[0]), key1 = hn::Set(d, key[1]);
  for (int round = 0; round < 10; ++round) {
    encipher_round(key0, key1, even);
    encipher_round(key0, key1, odd);
    key0 = hn::Add(key0, hn::Set(d, 0x9E3779B9u));
    key1 = hn::Add(key1, hn::Set(d, 0xBB67AE85u));
  }
  hn::StoreU(hn::OddEven(hn::DupEven(odd.c0), even.c0), d, first);
  hn::StoreU(hn::OddEven(hn::DupEven(odd.c1), even.c1), d, second);
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
