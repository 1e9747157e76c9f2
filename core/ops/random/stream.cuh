// The words of core/base/philox.h on a GPU.
#pragma once

#include "core/base/philox.h"
#include "core/ops/support/device.cuh"

namespace pmaptrain::ops::device {

struct Words {
  u32 first, second, third, fourth;
};

__device__ inline u32 upper(std::uint64_t product) { return static_cast<u32>(product >> 32); }

// Philox4x32-10 (Salmon et al. 2011).
__device__ inline Words philox(u32 key_low, u32 key_high, Words counter) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter.first, b = std::uint64_t{0xCD9E8D57} * counter.third;
    counter = {upper(b) ^ counter.second ^ key_low, static_cast<u32>(b), upper(a) ^ counter.fourth ^ key_high,
               static_cast<u32>(a)};
    key_low += 0x9E3779B9;
    key_high += 0xBB67AE85;
  }
  return counter;
}

// The words of elements in rows, by their index in the row. Each device has `local` rows and its own key.
struct Stream {
  const u32* keys;
  const i64* rows;
  i64 local, key_stride, row_stride;

  __device__ i64 device_of(i64 row) const { return row / local; }
  __device__ Words words(i64 row, i64 index) const {
    const i64 device = device_of(row);
    const u32* const key = keys + device * key_stride;
    const auto number = static_cast<std::uint64_t>(rows[device * row_stride + row % local]);
    return philox(key[0], key[1], {static_cast<u32>(number), upper(number), static_cast<u32>(index), 0});
  }
};

}  // namespace pmaptrain::ops::device
