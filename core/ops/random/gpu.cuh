// Random values from the words of core/base/philox.h. Normal values need a logarithm and a cosine, which differ on a
// GPU from the C library's, so their last bit may differ from the CPU's.
#pragma once

#include <cmath>
#include <numbers>

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

// The words of elements in rows. Each device has `local` rows and its own key.
struct Stream {
  const u32* keys;
  const i64* rows;
  i64 local, key_stride, row_stride;

  __device__ Words words(i64 row, i64 element) const {
    const i64 device = row / local;
    const u32* const key = keys + device * key_stride;
    const auto number = static_cast<std::uint64_t>(rows[device * row_stride + row % local]);
    return philox(key[0], key[1], {static_cast<u32>(number), upper(number), static_cast<u32>(element), 0});
  }
};

#define PMAPTRAIN_STREAM const u32 *keys, const i64 *rows, i64 local, i64 key_stride, i64 row_stride
#define PMAPTRAIN_STREAM_OF \
  Stream { keys, rows, local, key_stride, row_stride }

// `count` elements in rows of `elements`.
extern "C" __global__ void random_uniform(float* out, PMAPTRAIN_STREAM, i64 count, i64 elements) {
  const Stream stream = PMAPTRAIN_STREAM_OF;
  for_each_index(count, [&](i64 i) { out[i] = uniform_from_bits(stream.words(i / elements, i % elements).first); });
}

// Like normal_pair in core/base/philox.h.
extern "C" __global__ void random_normal(float* out, PMAPTRAIN_STREAM, i64 count, i64 elements) {
  const Stream stream = PMAPTRAIN_STREAM_OF;
  for_each_index(count, [&](i64 i) {
    const Words words = stream.words(i / elements, i % elements);
    const double u = (static_cast<double>(words.first) + 1.0) * 0x1.0p-32;
    const double angle = 2.0 * std::numbers::pi * (static_cast<double>(words.second) * 0x1.0p-32);
    out[i] = static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(angle));
  });
}

extern "C" __global__ void random_bernoulli(bool* out, PMAPTRAIN_STREAM, i64 count, i64 elements, double probability) {
  const Stream stream = PMAPTRAIN_STREAM_OF;
  for_each_index(count, [&](i64 i) {
    out[i] = static_cast<double>(uniform_from_bits(stream.words(i / elements, i % elements).first)) < probability;
  });
}

// `count` rows with one thread each, because each exchange depends on the previous one.
extern "C" __global__ void random_permutation(i32* out, PMAPTRAIN_STREAM, i64 count, i64 size) {
  const Stream stream = PMAPTRAIN_STREAM_OF;
  for_each_index(count, [&](i64 row) {
    i32* const places = out + row * size;
    for (i64 e = 0; e < size; ++e) {
      const auto word = static_cast<std::uint64_t>(stream.words(row, e).first);
      const auto other = static_cast<i64>(word * static_cast<std::uint64_t>(e + 1) >> 32);
      places[e] = places[other];  // if both are the same place, it has no value yet
      places[other] = static_cast<i32>(e);
    }
  });
}

#undef PMAPTRAIN_STREAM
#undef PMAPTRAIN_STREAM_OF

}  // namespace pmaptrain::ops::device
