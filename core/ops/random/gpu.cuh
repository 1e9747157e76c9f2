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

// The elements of a row as a box of an undivided row (core/ops/random/part.h), innermost dimension first; missing
// dimensions have size 1. Each device has its own offset.
#define PMAPTRAIN_DIMS(name) \
  i64 name##0, i64 name##1, i64 name##2, i64 name##3, i64 name##4, i64 name##5, i64 name##6, i64 name##7
#define PMAPTRAIN_LIST(name) \
  { name##0, name##1, name##2, name##3, name##4, name##5, name##6, name##7 }
#define PMAPTRAIN_PART const void *offsets, i64 wide, i64 offset_stride, PMAPTRAIN_DIMS(size), PMAPTRAIN_DIMS(undivided)
#define PMAPTRAIN_PART_OF \
  Part { offsets, wide, offset_stride, PMAPTRAIN_LIST(size), PMAPTRAIN_LIST(undivided) }

struct Part {
  const void* offsets;
  i64 wide, offset_stride;
  i64 sizes[8], strides[8];

  __device__ i64 index_of(i64 device, i64 element) const {
    i64 index = index_at(offsets, wide, device * offset_stride);
    for (int d = 0; d < 8 && element > 0; ++d) {
      index += element % sizes[d] * strides[d];
      element /= sizes[d];
    }
    return index;
  }
};

// Like normal_pair in core/base/philox.h.
__device__ inline float normal_of(const Words& words) {
  const double u = (static_cast<double>(words.first) + 1.0) * 0x1.0p-32;
  const double angle = 2.0 * std::numbers::pi * (static_cast<double>(words.second) * 0x1.0p-32);
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(angle));
}

// `count` elements in rows of `elements`, by an expression of their `words`; more parameters follow it.
#define PMAPTRAIN_KERNELS(name, T, value, ...)                                                       \
  extern "C" __global__ void random_##name(T* out, PMAPTRAIN_STREAM, i64 count,                      \
                                           i64 elements __VA_OPT__(, ) __VA_ARGS__) {                \
    const Stream stream = PMAPTRAIN_STREAM_OF;                                                       \
    for_each_index(count, [&](i64 i) {                                                               \
      const Words words = stream.words(i / elements, i % elements);                                  \
      out[i] = value;                                                                                \
    });                                                                                              \
  }                                                                                                  \
  extern "C" __global__ void random_##name##_part(T* out, PMAPTRAIN_STREAM, i64 count, i64 elements, \
                                                  PMAPTRAIN_PART __VA_OPT__(, ) __VA_ARGS__) {       \
    const Stream stream = PMAPTRAIN_STREAM_OF;                                                       \
    const Part part = PMAPTRAIN_PART_OF;                                                             \
    for_each_index(count, [&](i64 i) {                                                               \
      const i64 row = i / elements;                                                                  \
      const Words words = stream.words(row, part.index_of(stream.device_of(row), i % elements));     \
      out[i] = value;                                                                                \
    });                                                                                              \
  }
PMAPTRAIN_KERNELS(uniform, float, uniform_from_bits(words.first))
PMAPTRAIN_KERNELS(normal, float, normal_of(words))
PMAPTRAIN_KERNELS(bernoulli, bool, static_cast<double>(uniform_from_bits(words.first)) < probability,
                  double probability)
#undef PMAPTRAIN_KERNELS

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

#undef PMAPTRAIN_PART_OF
#undef PMAPTRAIN_PART
#undef PMAPTRAIN_LIST
#undef PMAPTRAIN_DIMS
#undef PMAPTRAIN_STREAM
#undef PMAPTRAIN_STREAM_OF

}  // namespace pmaptrain::ops::device
