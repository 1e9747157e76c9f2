// Walks over boxes of row-major arrays, without allocating. Rank is at most max_rank.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "core/ops/support/rules.h"

namespace pmaptrain::ops {

// Calls f(offset_a, offset_b) for every index of a box, in row-major order, where the offsets are those of the index
// by two sets of strides. Spans have equal length; an empty box calls nothing, a box of rank 0 calls once.
template <class F>
void walk(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides_a,
          std::span<const std::int64_t> strides_b, F&& f) {
  for (std::int64_t size : sizes) {
    if (size == 0) return;
  }
  std::array<std::int64_t, max_rank> index{};
  std::int64_t a = 0, b = 0;
  while (true) {
    f(a, b);
    std::size_t d = sizes.size();
    while (d-- > 0) {
      a += strides_a[d];
      b += strides_b[d];
      if (++index[d] < sizes[d]) break;
      a -= strides_a[d] * sizes[d];
      b -= strides_b[d] * sizes[d];
      index[d] = 0;
    }
    if (d >= sizes.size()) return;  // the outermost index ran over
  }
}

// Sizes and strides in arrays of fixed capacity. Row-major strides of a shape come from row_major.
struct Dims {
  std::array<std::int64_t, max_rank> values{};
  std::size_t rank = 0;

  void push(std::int64_t value) { values[rank++] = value; }
  std::int64_t& operator[](std::size_t i) { return values[i]; }
  std::int64_t operator[](std::size_t i) const { return values[i]; }
  std::span<const std::int64_t> span() const { return {values.data(), rank}; }
};

// Elements between neighbours along each dimension of an array of these sizes.
Dims row_major(std::span<const std::int64_t> sizes);

// Calls f with a number of bytes: with a constant for small numbers, where a copy is an instruction or two and a call
// takes longer than the copy.
template <class F>
void with_few_bytes(std::size_t bytes, const F& f) {
  switch (bytes) {
    case 1: return f(std::integral_constant<std::size_t, 1>());
    case 2: return f(std::integral_constant<std::size_t, 2>());
    case 4: return f(std::integral_constant<std::size_t, 4>());
    case 8: return f(std::integral_constant<std::size_t, 8>());
    case 12: return f(std::integral_constant<std::size_t, 12>());
    case 16: return f(std::integral_constant<std::size_t, 16>());
    default: return f(bytes);
  }
}

// Copies a box of `sizes` between two arrays of elements of `element` bytes, whose strides are in elements; a negative
// one walks backwards. Copies the longest runs that are contiguous on both sides.
void copy_box(std::span<const std::int64_t> sizes, const std::byte* from, Dims from_strides, std::byte* to,
              Dims to_strides, std::size_t element);

}  // namespace pmaptrain::ops
