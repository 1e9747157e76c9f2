// Functions of f32 arrays, and sums of rows, with the widest vector instructions of the CPU.
//
// The functions are within 4 units in the last place of the exact result (tests hold them to libm), erf within 2 and
// pow within 1, for every f32: infinities, NaN, -0 and subnormal numbers as libm has them. An element's bits depend on
// the CPU (those of erf and pow do not) and on its value alone, not on its position or the number of elements, so a
// range may be cut anywhere. A result may be the memory of an operand.
#pragma once

#include <cstddef>

namespace pmaptrain {

using VectorMath = void (*)(std::size_t n, const float* x, float* y);
// Of two operands, each of n elements (step 1) or of one for all (step 0).
using VectorMath2 = void (*)(std::size_t n, const float* x, std::size_t x_step, const float* y, std::size_t y_step,
                             float* out);

#ifdef PMAPTRAIN_REFERENCE_KERNELS

// Plain loops are used, and these are null.
inline constexpr bool has_vector_math = false;
inline constexpr VectorMath vector_exp = nullptr, vector_expm1 = nullptr, vector_log = nullptr, vector_log1p = nullptr,
                            vector_sin = nullptr, vector_cos = nullptr, vector_tanh = nullptr, vector_erf = nullptr;
inline constexpr VectorMath2 vector_pow = nullptr;

#else

inline constexpr bool has_vector_math = true;
void vector_exp(std::size_t n, const float* x, float* y);
void vector_expm1(std::size_t n, const float* x, float* y);
void vector_log(std::size_t n, const float* x, float* y);
void vector_log1p(std::size_t n, const float* x, float* y);
void vector_sin(std::size_t n, const float* x, float* y);
void vector_cos(std::size_t n, const float* x, float* y);
void vector_tanh(std::size_t n, const float* x, float* y);
void vector_erf(std::size_t n, const float* x, float* y);
void vector_pow(std::size_t n, const float* x, std::size_t x_step, const float* y, std::size_t y_step, float* out);

// out[j] += x[0, j] + x[1, j] + ... in this order, for at least one row of `width` contiguous elements; rows follow
// each other without a gap. The bits are the same on every machine.
void vector_add_rows(std::size_t rows, std::size_t width, const float* x, float* out);

#endif  // PMAPTRAIN_REFERENCE_KERNELS

}  // namespace pmaptrain
