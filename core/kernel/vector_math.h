// Functions of f32 arrays, and sums of rows, with the widest vector instructions of the CPU.
//
// For every f32 value, the result is within 4 units in the last place of the exact result, for erf within 2, for pow
// within 1. Infinities, NaN, -0 and subnormal numbers are handled as in libm; tests compare with libm. The result for
// an element depends only on its value and the CPU (for erf and pow, not even on the CPU). It does not depend on the
// element's position or the number of elements, so an array may be divided anywhere. The result may overwrite an
// operand.
#pragma once

#include <cstddef>

namespace pmaptrain {

using VectorMath = void (*)(std::size_t n, const float* x, float* y);
// A function of two operands. An operand with step 1 has n elements; one with step 0 has one element, used n times.
using VectorMath2 = void (*)(std::size_t n, const float* x, std::size_t x_step, const float* y, std::size_t y_step,
                             float* out);

#ifdef PMAPTRAIN_REFERENCE_KERNELS

// A build without a kernel library (PMAPTRAIN_REFERENCE_KERNELS) uses plain loops, so these are null.
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

// out[j] += x[0, j] + x[1, j] + ... in this order, for at least one row of `width` elements; rows are contiguous.
// Results do not depend on the machine.
void vector_add_rows(std::size_t rows, std::size_t width, const float* x, float* out);

#endif  // PMAPTRAIN_REFERENCE_KERNELS

}  // namespace pmaptrain
