// The inner loops of reductions, in a fixed, blocked order that depends only on the sizes.
//
// A Reducer has `identity<T>()` and `combine(acc, x)`. It may have its own `add_rows(rows, width, x, out)` for blocks
// of rows and `contiguous(n, x)` for contiguous elements, with the same order. Blocks of some hundred elements are
// reduced into running results, so no accumulator takes part in more than a few hundred additions per block. So the
// rounding error of a sum of n grows with n / block + block rather than with n.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/ops/reduce/reducers.h"

namespace pmaptrain::ops {

inline constexpr std::size_t reduce_width = 256;  // accumulators on the stack

// Reduces whole groups of `width` elements into `total`, with `width` parallel accumulators, which the compiler keeps
// in vectors; then combines halves with halves.
template <class Reducer, std::size_t width, class T>
void reduce_groups(const T*& x, std::size_t& n, T& total) {
  while (n >= width) {
    const std::size_t rounds = std::min(n / width, reduce_block);
    std::array<T, width> acc;
    for (std::size_t j = 0; j < width; ++j) acc[j] = x[j];
    for (std::size_t i = 1; i < rounds; ++i) {
      for (std::size_t j = 0; j < width; ++j) acc[j] = Reducer::combine(acc[j], x[i * width + j]);
    }
    for (std::size_t half = width / 2; half > 0; half /= 2) {
      for (std::size_t j = 0; j < half; ++j) acc[j] = Reducer::combine(acc[j], acc[j + half]);
    }
    total = Reducer::combine(total, acc[0]);
    x += rounds * width;
    n -= rounds * width;
  }
}

// The reduction of n contiguous elements.
template <class Reducer, class T>
T reduce_contiguous(const T* x, std::size_t n) {
  if constexpr (requires { Reducer::contiguous(n, x); }) {
    return Reducer::contiguous(n, x);
  } else {
    T total = Reducer::template identity<T>();
    reduce_groups<Reducer, wide_group>(x, n, total);
    reduce_groups<Reducer, narrow_group>(x, n, total);
    for (std::size_t i = 0; i < n; ++i) total = Reducer::combine(total, x[i]);
    return total;
  }
}

// out[j] = combine(out[j], reduction over the rows r of x[r, j]), for contiguous rows of `width` elements.
template <class Reducer, class T>
void reduce_wide_rows(const T* x, std::size_t rows, std::size_t width, T* out) {
  if constexpr (requires { Reducer::add_rows(rows, width, x, out); }) {
    for (std::size_t r = 0; r < rows; r += reduce_block) {
      Reducer::add_rows(std::min(reduce_block, rows - r), width, x + r * width, out);
    }
    return;
  }
  std::array<T, reduce_width> acc;
  for (std::size_t first = 0; first < width; first += reduce_width) {
    const std::size_t columns = std::min(reduce_width, width - first);
    for (std::size_t r0 = 0; r0 < rows; r0 += reduce_block) {
      const std::size_t r1 = std::min(rows, r0 + reduce_block);
      const T* row = x + r0 * width + first;
      std::copy_n(row, columns, acc.data());
      for (std::size_t r = r0 + 1; r < r1; ++r) {
        row += width;
        for (std::size_t j = 0; j < columns; ++j) acc[j] = Reducer::combine(acc[j], row[j]);
      }
      for (std::size_t j = 0; j < columns; ++j) out[first + j] = Reducer::combine(out[first + j], acc[j]);
    }
  }
}

// The number of short rows that are first processed as one wide row, so that the inner loop is never short.
inline std::size_t rows_of_wide(std::size_t rows, std::size_t width) {
  std::size_t group = 1;
  while (2 * group * width <= reduce_width / 2 && 8 * group <= rows) group *= 2;
  return group;
}

// Like reduce_wide_rows, with wide rows.
template <class Reducer, class T>
void reduce_rows(const T* x, std::size_t rows, std::size_t width, T* out) {
  const std::size_t group = rows_of_wide(rows, width);
  if (group == 1) return reduce_wide_rows<Reducer>(x, rows, width, out);
  std::array<T, reduce_width> wide;
  std::fill_n(wide.data(), group * width, Reducer::template identity<T>());
  const std::size_t whole = rows / group;
  reduce_wide_rows<Reducer>(x, whole, group * width, wide.data());
  reduce_wide_rows<Reducer>(wide.data(), group, width, out);
  if (whole * group < rows) reduce_wide_rows<Reducer>(x + whole * group * width, rows - whole * group, width, out);
}

// The order in which a GPU reduces the columns of a matrix, so that the result is that of reduce_rows(). Each
// *part* is reduced by one thread: a column of a block of reduce_block wide rows, or a column of the rows that are left
// after the last wide row. The parts of a column are then combined in order.
struct ColumnOrder {
  std::int64_t rows = 1, columns = 1;
  std::int64_t group = 1;  // rows of a wide row: rows_of_wide()

  constexpr std::int64_t wide() const { return group * columns; }
  constexpr std::int64_t wide_rows() const { return rows / group; }
  constexpr std::int64_t left() const { return rows % group; }
  constexpr std::int64_t blocks() const {
    constexpr auto block = static_cast<std::int64_t>(reduce_block);
    return (wide_rows() + block - 1) / block;
  }
  // The parts of blocks come first: by block, then by column.
  constexpr std::int64_t parts_of_blocks() const { return blocks() * wide(); }
  constexpr std::int64_t parts() const { return parts_of_blocks() + (left() > 0 ? columns : 0); }
};

inline ColumnOrder column_order(std::int64_t rows, std::int64_t columns) {
  const std::size_t group = rows_of_wide(static_cast<std::size_t>(rows), static_cast<std::size_t>(columns));
  return {rows, columns, static_cast<std::int64_t>(group)};
}

}  // namespace pmaptrain::ops
