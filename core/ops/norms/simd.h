// The norms of f32 with the widest vector instructions of the CPU.
#pragma once

#include <cstddef>

namespace pmaptrain::ops {

// The number of partial sums: element i is added to sum i % sums, and halves are added to halves at the end. The
// reference adds in the same order, so the bits are the same.
inline constexpr std::size_t norm_sums = 32;

#ifndef PMAPTRAIN_REFERENCE_KERNELS

// Adds the squares of n elements, a multiple of norm_sums, to `sums`, and updates `largest`, which has as many
// elements, by their magnitudes. A NaN may be missing in `largest`: it is in the sums.
void add_norms(std::size_t n, const float* x, double* sums, float* largest);

#endif  // PMAPTRAIN_REFERENCE_KERNELS

}  // namespace pmaptrain::ops
