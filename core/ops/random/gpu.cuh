// Random values from the words of core/base/philox.h. Normal values need a logarithm and a cosine, which differ on a
// GPU from the C library's, so their last bit may differ from the CPU's.
#pragma once

#include <cmath>
#include <numbers>

#include "core/ops/random/stream.cuh"

namespace pmaptrain::ops::device {

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
