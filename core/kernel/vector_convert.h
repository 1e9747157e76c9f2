// Converts arrays between bf16 and f32 with the widest vector instructions of the CPU. Results equal those of the class
// bf16.
#pragma once

#include <cstddef>

#include "core/base/bf16.h"

namespace pmaptrain {

void to_f32(std::size_t n, const bf16* x, float* y);
void to_bf16(std::size_t n, const float* x, bf16* y);

#ifndef PMAPTRAIN_REFERENCE_KERNELS

// Copies rows of n elements, which it converts. From one row to the next, it is x_row and y_row elements.
void copy_rows(std::size_t rows, std::size_t n, const float* x, std::size_t x_row, float* y, std::size_t y_row);
void copy_rows(std::size_t rows, std::size_t n, const bf16* x, std::size_t x_row, float* y, std::size_t y_row);
void copy_rows(std::size_t rows, std::size_t n, const float* x, std::size_t x_row, bf16* y, std::size_t y_row);

#endif  // PMAPTRAIN_REFERENCE_KERNELS

}  // namespace pmaptrain
