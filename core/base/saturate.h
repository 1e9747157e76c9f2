// Saturating sums and products of byte counts: an overflow gives the largest number, which is then refused as too
// large.
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

// `bytes` rounded up to a multiple of `unit`, a power of two; saturates to the largest multiple.
constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) { return sum_of(bytes, unit - 1) / unit * unit; }

}  // namespace pmaptrain
