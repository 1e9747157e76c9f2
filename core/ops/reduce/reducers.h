// The reducers (sum, maximum) and the block sizes of reductions, shared with generated kernels.
#pragma once

#include <cstddef>
#include <limits>
#include <type_traits>

#include "core/ops/support/arithmetic.h"

namespace pmaptrain::ops {

struct SumReducer {
  // -0 + x is x for every x, even for -0; 0 + x is not.
  template <class T>
  static constexpr T identity() {
    return std::is_floating_point_v<T> ? static_cast<T>(-0.0) : T{0};
  }
  template <class T>
  static constexpr T combine(T acc, T x) {
    return wrapping_add(acc, x);
  }
};

struct MaxReducer {
  template <class T>
  static constexpr T identity() {
    if constexpr (FloatingElement<T>) {
      return static_cast<T>(-std::numeric_limits<T>::infinity());
    } else {
      return std::numeric_limits<T>::lowest();
    }
  }
  template <class T>
  static constexpr T combine(T acc, T x) {
    return larger(acc, x);
  }
};

// Two reductions of the same elements in one pass.
template <class A, class B>
struct Pair {
  A first;
  B second;
};
template <class First, class Second>
struct PairReducer {
  template <class T>
  static constexpr T identity() {
    return {First::template identity<decltype(T::first)>(), Second::template identity<decltype(T::second)>()};
  }
  template <class T>
  static constexpr T combine(T acc, T x) {
    return {First::combine(acc.first, x.first), Second::combine(acc.second, x.second)};
  }
};

// On a GPU, a block of threads has a lane for each part of columns, and several threads that compute a lane's elements.
inline constexpr unsigned part_lanes = 64, part_threads = 256;

// A thread of a fused row keeps at most so many elements of an operand in registers.
inline constexpr unsigned kept_elements = 32;

inline constexpr std::size_t reduce_block = 256;  // combinations of an accumulator in a block
// The numbers of parallel accumulators: for contiguous elements, and for the rest of them.
inline constexpr std::size_t wide_group = 64, narrow_group = 16;

}  // namespace pmaptrain::ops
