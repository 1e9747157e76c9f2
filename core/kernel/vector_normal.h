// Draws the normal values of core/base/philox.h with the widest vector instructions of the CPU, bit for bit.
//
// Vectors compute the logarithm, the cosine and the sine with a known bound of the error. If a value within this bound
// could have another float, about one in 100 000, the scalar function computes it. So the results are those of the C
// library's functions, on every set of instructions.
#pragma once

#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include <cstddef>
#include <cstdint>

#include "core/base/philox.h"

namespace pmaptrain {

// out[i] = normal_from_bits(a[i], b[i]), for n pairs.
void vector_normals(std::size_t n, const std::uint32_t* a, const std::uint32_t* b, float* out);

// out[i] = static_cast<float>(scale * truncated_normal(key, first + i)), for i below n. `scale` is between 1e-10 and
// 1e10.
void vector_truncated_normals(PhiloxKey key, std::uint64_t first, std::size_t n, double scale, float* out);

// A bound of the error of a product of radius and cosine or sine, divided by the radius. Over all 2^32 words, the
// errors of the three are at most 2^-50, beside the C library of glibc 2.36.
inline constexpr double normal_doubt = 0x1p-45;

// For tests: what vectors compute for normal_pair(a[i], b[i]), the radius, and the cosine and the sine of the angle,
// for n pairs. The relative error of the radius and the errors of the others are at most normal_doubt / 4.
void vector_normal_parts(std::size_t n, const std::uint32_t* a, const std::uint32_t* b, double* radius, double* cosine,
                         double* sine);

}  // namespace pmaptrain

#endif  // PMAPTRAIN_REFERENCE_KERNELS
