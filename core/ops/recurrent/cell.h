// The steps of an LSTM and of a GRU for one feature, and their gradients: what references and kernels for GPUs compute.
#pragma once

#include <cmath>
#include <cstdint>

namespace pmaptrain::ops {

// The positions of a sequence in the order in which a recurrence meets them. Shorter sequences are padded to the same
// number of positions; the layer chooses inputs that keep the state there (core/layers/recurrent.h).
struct Steps {
  std::int64_t count = 0;
  bool reverse = false;

  // The position of a step.
  constexpr std::int64_t at(std::int64_t step) const { return reverse ? count - 1 - step : step; }
};

template <class T>
constexpr T sigmoid_of(T x) {
  return T(0.5) * std::tanh(T(0.5) * x) + T(0.5);
}

// From the sums of i, f, g and o, and the cell of the position before.
template <class T>
struct LstmCell {
  T gates[4];
  T cell, out;

  constexpr LstmCell(const T (&sums)[4], T before)
      : gates{sigmoid_of(sums[0]), sigmoid_of(sums[1]), std::tanh(sums[2]), sigmoid_of(sums[3])},
        cell(gates[1] * before + gates[0] * gates[2]),
        out(gates[3] * std::tanh(cell)) {}
};

// The cotangents of the sums of i, f, g and o, and of the cell before, from those of out and of the cell.
template <class T>
struct LstmCellGradient {
  T gates[4];
  T cell;

  constexpr LstmCellGradient(const T (&of)[4], T cell_here, T before, T dout, T dcell) {
    const T i = of[0], f = of[1], g = of[2], o = of[3], most = std::tanh(cell_here);
    const T all = dcell + dout * o * (T(1) - most * most);
    gates[0] = all * g * i * (T(1) - i);
    gates[1] = all * before * f * (T(1) - f);
    gates[2] = all * i * (T(1) - g * g);
    gates[3] = dout * most * o * (T(1) - o);
    cell = all * f;
  }
};

// From the sums of r and z, the input of n, the product of n with its bias, and out of the position before.
template <class T>
struct GruCell {
  T gates[4];  // r, z, n, product
  T out;

  constexpr GruCell(T r_sum, T z_sum, T n_input, T product, T before) {
    const T r = sigmoid_of(r_sum), z = sigmoid_of(z_sum), n = std::tanh(n_input + r * product);
    gates[0] = r, gates[1] = z, gates[2] = n, gates[3] = product;
    out = (T(1) - z) * n + z * before;
  }
};

// The cotangents of the inputs of r, z and n, of the product of n, and of out of the position before but for products.
template <class T>
struct GruCellGradient {
  T inputs[3];
  T product, hidden;

  constexpr GruCellGradient(const T (&of)[4], T before, T dout) {
    const T r = of[0], z = of[1], n = of[2];
    inputs[2] = dout * (T(1) - z) * (T(1) - n * n);
    inputs[1] = dout * (before - n) * z * (T(1) - z);
    inputs[0] = inputs[2] * of[3] * r * (T(1) - r);
    product = inputs[2] * r;
    hidden = dout * z;
  }
};

}  // namespace pmaptrain::ops
