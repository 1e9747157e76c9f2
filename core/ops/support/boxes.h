// Iterates over boxes in row-major arrays, without allocating. The rank is at most max_rank.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "core/ops/support/rules.h"

namespace pmaptrain::ops {

// Calls f(offset_a, offset_b) for every index of a box, in row-major order. The offsets follow from two sets of
// strides. All spans have the same length. f is not called for an empty box, and called once for a box of rank 0.
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
    if (d >= sizes.size()) return;  // the outermost index has passed its end
  }
}

// Sizes or strides in an array of fixed capacity.
struct Dims {
  std::array<std::int64_t, max_rank> values{};
  std::size_t rank = 0;

  void push(std::int64_t value) { values[rank++] = value; }
  std::int64_t& operator[](std::size_t i) { return values[i]; }
  std::int64_t operator[](std::size_t i) const { return values[i]; }
  std::span<const std::int64_t> span() const { return {values.data(), rank}; }
};

// The row-major strides, in elements, of an array with these sizes.
Dims row_major(std::span<const std::int64_t> sizes);

// Calls f with a number of bytes; small numbers are passed as compile-time constants, because then a copy takes one or
// two instructions instead of a call.
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

// Copies a box of `sizes` between two arrays of elements with `element` bytes. Strides are in elements and may be
// negative. Copies the longest runs that are contiguous on both sides.
void copy_box(std::span<const std::int64_t> sizes, const std::byte* from, Dims from_strides, std::byte* to,
              Dims to_strides, std::size_t element);

}  // namespace pmaptrain::ops
