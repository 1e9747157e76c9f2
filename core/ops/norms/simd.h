// The norms of f32 with the widest vector instructions of the CPU.
#pragma once

#include <cstddef>

namespace pmaptrain::ops {

// The number of partial sums: element i is added to sum i % norm_sums; at the end, halves are added to halves. The
// reference uses the same order, so results are equal bit for bit.
inline constexpr std::size_t norm_sums = 32;

#ifndef PMAPTRAIN_REFERENCE_KERNELS

// Adds the squares of n elements, a multiple of norm_sums, to `sums`, and updates the magnitudes in `largest`, which
// also has norm_sums elements. `largest` may miss a NaN, but `sums` never does.
void add_norms(std::size_t n, const float* x, double* sums, float* largest);

// The norms of rows of n elements, a multiple of norm_sums: for each, the sum of its squares and the largest magnitude.
void norms_of_rows(std::size_t rows, std::size_t n, const float* x, double* squares, float* largest);

#endif  // PMAPTRAIN_REFERENCE_KERNELS

}  // namespace pmaptrain::ops
