// What the lanes of a warp exchange.
#pragma once

#include <bit>

#include "core/ops/support/device.cuh"

namespace pmaptrain::ops::device {

inline constexpr i64 warp_threads = 32;

__device__ inline i64 lane() { return threadIdx.x % warp_threads; }

// The value of the lane whose number differs from this one's in the bits of `mask`. All lanes of a warp call it.
#if defined(__CUDACC__)
template <class T>
__device__ T from_lane(T value, int mask) {
  return __shfl_xor_sync(0xFFFFFFFF, value, mask);
}
#else
template <class T>
__device__ T from_lane(T value, int mask) {
  const auto bits = std::bit_cast<std::conditional_t<sizeof(T) == 8, std::uint64_t, u32>>(value);
  const auto& all =
      PMAPTRAIN_EXCHANGE(static_cast<u32>(bits), static_cast<u32>(static_cast<std::uint64_t>(bits) >> 32));
  const auto& words = all[static_cast<std::size_t>(lane() ^ mask)];
  return std::bit_cast<T>(static_cast<decltype(bits)>(words[0] | static_cast<std::uint64_t>(words[1]) << 32));
}
#endif

}  // namespace pmaptrain::ops::device
