// Folds: the inner loops of reductions, in a fixed, blocked order that depends on the sizes alone.
//
// A Fold has `identity<T>()` and `combine(acc, x)`, and may have `add_rows(rows, width, x, out)` of its own for blocks
// of rows and `contiguous(n, x)` for neighbours, in the same order. Blocks of some hundred combinations are folded into
// running results, so that no accumulator takes part in more than a few hundred additions per block: the rounding error
// of a sum of n grows with n / block + block rather than with n.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/ops/reduce/folds.h"

namespace pmaptrain::ops {

inline constexpr std::size_t fold_width = 256;  // accumulators on the stack

// Folds whole groups of `width` elements into `total`: `width` accumulators side by side, which the compiler keeps in
// vectors, then halves combined with halves.
template <class Fold, std::size_t width, class T>
void fold_groups(const T*& x, std::size_t& n, T& total) {
  while (n >= width) {
    const std::size_t rounds = std::min(n / width, fold_block);
    std::array<T, width> acc;
    for (std::size_t j = 0; j < width; ++j) acc[j] = x[j];
    for (std::size_t i = 1; i < rounds; ++i) {
      for (std::size_t j = 0; j < width; ++j) acc[j] = Fold::combine(acc[j], x[i * width + j]);
    }
    for (std::size_t half = width / 2; half > 0; half /= 2) {
      for (std::size_t j = 0; j < half; ++j) acc[j] = Fold::combine(acc[j], acc[j + half]);
    }
    total = Fold::combine(total, acc[0]);
    x += rounds * width;
    n -= rounds * width;
  }
}

// The fold of n contiguous elements.
template <class Fold, class T>
T fold_contiguous(const T* x, std::size_t n) {
  if constexpr (requires { Fold::contiguous(n, x); }) {
    return Fold::contiguous(n, x);
  } else {
    T total = Fold::template identity<T>();
    fold_groups<Fold, wide_group>(x, n, total);
    fold_groups<Fold, narrow_group>(x, n, total);
    for (std::size_t i = 0; i < n; ++i) total = Fold::combine(total, x[i]);
    return total;
  }
}

// out[j] = combine(out[j], fold over the rows of x[r, j]), for rows of `width` contiguous elements that follow each
// other without a gap.
template <class Fold, class T>
void fold_wide_rows(const T* x, std::size_t rows, std::size_t width, T* out) {
  if constexpr (requires { Fold::add_rows(rows, width, x, out); }) {
    for (std::size_t r = 0; r < rows; r += fold_block) {
      Fold::add_rows(std::min(fold_block, rows - r), width, x + r * width, out);
    }
    return;
  }
  std::array<T, fold_width> acc;
  for (std::size_t first = 0; first < width; first += fold_width) {
    const std::size_t columns = std::min(fold_width, width - first);
    for (std::size_t r0 = 0; r0 < rows; r0 += fold_block) {
      const std::size_t r1 = std::min(rows, r0 + fold_block);
      const T* row = x + r0 * width + first;
      std::copy_n(row, columns, acc.data());
      for (std::size_t r = r0 + 1; r < r1; ++r) {
        row += width;
        for (std::size_t j = 0; j < columns; ++j) acc[j] = Fold::combine(acc[j], row[j]);
      }
      for (std::size_t j = 0; j < columns; ++j) out[first + j] = Fold::combine(out[first + j], acc[j]);
    }
  }
}

// How many short rows count as one wide one first, so that the inner loop is never short.
inline std::size_t rows_of_wide(std::size_t rows, std::size_t width) {
  std::size_t group = 1;
  while (2 * group * width <= fold_width / 2 && 8 * group <= rows) group *= 2;
  return group;
}

// As fold_wide_rows, by wide rows.
template <class Fold, class T>
void fold_rows(const T* x, std::size_t rows, std::size_t width, T* out) {
  const std::size_t group = rows_of_wide(rows, width);
  if (group == 1) return fold_wide_rows<Fold>(x, rows, width, out);
  std::array<T, fold_width> wide;
  std::fill_n(wide.data(), group * width, Fold::template identity<T>());
  const std::size_t whole = rows / group;
  fold_wide_rows<Fold>(x, whole, group * width, wide.data());
  fold_wide_rows<Fold>(wide.data(), group, width, out);
  if (whole * group < rows) fold_wide_rows<Fold>(x + whole * group * width, rows - whole * group, width, out);
}

}  // namespace pmaptrain::ops
