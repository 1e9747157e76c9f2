// Functions of f32 arrays, and sums of rows, with the widest instructions that the machine has.
//
// The functions are within 4 units in the last place of the exact result (tests hold them to libm), for every f32:
// infinities, NaN and subnormal numbers as libm has them. An element's bits depend on the machine and on its value
// alone: not on where it lies or on how many there are, so a range may be cut anywhere. `y` may be `x`.
#pragma once

#include <cstddef>

namespace pmaptrain {

using VectorMath = void (*)(std::size_t n, const float* x, float* y);

#ifdef PMAPTRAIN_REFERENCE_KERNELS

// Null: the plain loops are right.
inline constexpr VectorMath vector_exp = nullptr, vector_expm1 = nullptr, vector_log = nullptr, vector_log1p = nullptr,
                            vector_sin = nullptr, vector_cos = nullptr, vector_tanh = nullptr;

#else

void vector_exp(std::size_t n, const float* x, float* y);
void vector_expm1(std::size_t n, const float* x, float* y);
void vector_log(std::size_t n, const float* x, float* y);
void vector_log1p(std::size_t n, const float* x, float* y);
void vector_sin(std::size_t n, const float* x, float* y);
void vector_cos(std::size_t n, const float* x, float* y);
void vector_tanh(std::size_t n, const float* x, float* y);

// out[j] += x[0, j] + x[1, j] + ... in this order, for at least one row of `width` contiguous elements; rows follow
// each other without a gap. The bits are the same on every machine.
void vector_add_rows(std::size_t rows, std::size_t width, const float* x, float* out);

#endif  // PMAPTRAIN_REFERENCE_KERNELS

}  // namespace pmaptrain
