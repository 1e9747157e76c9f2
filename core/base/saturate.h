// Sums and products of byte counts that end at the largest number instead of wrapping around: what needs so much is
// refused for its size, not taken for something small.
#pragma once

#include <cstddef>
#include <limits>

namespace pmaptrain {

inline constexpr std::size_t most_bytes = std::numeric_limits<std::size_t>::max();

template <class... Counts>
constexpr std::size_t sum_of(std::size_t sum, Counts... others) {
  const bool wraps = (__builtin_add_overflow(sum, std::size_t{others}, &sum) || ...);
  return wraps ? most_bytes : sum;
}

constexpr std::size_t product_of(std::size_t a, std::size_t b) {
  std::size_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? most_bytes : product;
}

// The next multiple of `unit`, a power of two; the largest one where that is too far.
constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) { return sum_of(bytes, unit - 1) / unit * unit; }

}  // namespace pmaptrain
