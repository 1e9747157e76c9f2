// The steps of an LSTM and of a GRU on rows of f32, with the widest vector instructions of the CPU. The result of a row
// does not depend on the rows beside it.
#pragma once

#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include <cstddef>

namespace pmaptrain::ops {

// Rows are multiplied in groups of so many; arrays of rows have room for whole groups.
inline constexpr std::size_t recurrent_rows = 8;
// A matrix is stored in panels of so many columns, which are read from the first row to the last. What is behind its
// last column is zero.
inline constexpr std::size_t panel_columns = 32;
constexpr std::size_t in_panels(std::size_t columns) {
  return (columns + panel_columns - 1) / panel_columns * panel_columns;
}

// From a row-major matrix [depth,columns] to panels, depth · in_panels(columns) elements.
void pack_panels(std::size_t depth, std::size_t columns, const float* matrix, float* panels);

// c [rows,in_panels(columns)] = a [rows,depth] times a matrix in panels; or c + the product, with `add`. Rows begin
// a_row and c_row elements apart.
void multiply_panels(std::size_t rows, std::size_t depth, std::size_t columns, const float* a, std::size_t a_row,
                     const float* panels, float* c, std::size_t c_row, bool add);

// One row at one position (recurrent.h). `sums` are those of the gates; `cell` is the cell before, then the cell here.
void lstm_cell(std::size_t features, const float* sums, float* cell, float* hidden, float* gates);

// The cotangent of the sums of the gates, from those of out here, and of out and of the cell from the position behind.
// `dcell` becomes the cotangent of the cell before.
void lstm_cell_gradient(std::size_t features, const float* gates, const float* cell, const float* before,
                        const float* dout, const float* dhidden, float* dcell, float* dsums);

// `sums` are those of r and z, and the product of n with its bias; `n_input` is the input of n. `hidden` is out before,
// then out here.
void gru_cell(std::size_t features, const float* sums, const float* n_input, float* hidden, float* gates);

// The cotangents of the inputs of r, z and n, and that of the product of n. `dhidden` is the cotangent of out from the
// position behind, then that of out before but for products.
void gru_cell_gradient(std::size_t features, const float* gates, const float* before, const float* dout, float* dhidden,
                       float* dinputs, float* dproduct);

}  // namespace pmaptrain::ops

#endif  // PMAPTRAIN_REFERENCE_KERNELS
