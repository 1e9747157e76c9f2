// Products of narrow f32 rows with a vector, and sums, with the widest vector instructions of the CPU.
#pragma once

#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pmaptrain {

// Matrices of rows of `width` <= widest contiguous elements, which follow each other without a gap. Rows so short do
// not fill vector registers, so several are computed at a time.
class NarrowRows {
 public:
  static constexpr std::size_t widest = 16;

  explicit NarrowRows(std::size_t width);

  // y[r] = ((0 + x[r, 0] w[0]) + x[r, 1] w[1]) + ... + *bias, without a bias where that is null. The bits are the same
  // on every machine, and a row's do not depend on how many rows there are.
  void times(std::size_t rows, const float* x, const float* w, const float* bias, float* y) const;

  // out[f] = the sum over rows of x[r, f] g[r]. The order of additions depends on the number of rows, the width and the
  // length of the CPU's vector registers.
  void weighted_sum(std::size_t rows, const float* x, const float* g, float* out) const;

 private:
  std::size_t width_;
  std::vector<std::int32_t> transposition_, row_of_element_;  // tables for the CPU's shuffle instructions
};

// The sum of n elements in SumReducer's order (core/ops/reduce/loops.h), so with its bits.
float vector_sum(std::size_t n, const float* x);

}  // namespace pmaptrain

#endif  // PMAPTRAIN_REFERENCE_KERNELS
