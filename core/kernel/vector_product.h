// Products of narrow f32 rows with a vector, and sums, with the widest vector instructions of the CPU.
#pragma once

#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pmaptrain {

// Operations on row-major matrices whose rows have `width` <= widest elements. Such a row does not fill a vector
// register, so several rows are processed at a time.
class NarrowRows {
 public:
  static constexpr std::size_t widest = 16;

  explicit NarrowRows(std::size_t width);

  // y[r] = ((0 + x[r, 0] w[0]) + x[r, 1] w[1]) + ... + *bias. A null bias is omitted. Results do not depend on the
  // machine, and the result of a row does not depend on the number of rows.
  void times(std::size_t rows, const float* x, const float* w, const float* bias, float* y) const;

  // out[f] = the sum over rows r of x[r, f] g[r]. The order of the additions depends on the number of rows, on the
  // width of rows, and on the number of elements in the CPU's vector registers.
  void weighted_sum(std::size_t rows, const float* x, const float* g, float* out) const;

 private:
  std::size_t width_;
  std::vector<std::int32_t> transposition_, row_of_element_;  // tables for the CPU's shuffle instructions
};

// The sum of n elements. It equals the result of SumReducer (core/ops/reduce/loops.h) because it adds in the same
// order.
float vector_sum(std::size_t n, const float* x);

}  // namespace pmaptrain

#endif  // PMAPTRAIN_REFERENCE_KERNELS
