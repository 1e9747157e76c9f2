// The cells of an LSTM and of a GRU at one position, and their gradients: a thread has a feature of an example. The
// product with the states of the position before is in scratch memory, where a library has written it; behind it is
// what a position leaves for the next one.
#pragma once

#include "core/ops/recurrent/cell.h"
#include "core/ops/support/device.cuh"

namespace pmaptrain::ops::device {

// Each device has `local` examples. `before` is the position of the step before in the order of the recurrence, or -1.
struct CellsAt {
  i64 count, local, positions, features, position, before, is_multiplied;
};

// A feature of an example.
template <class C>
struct CellPlace {
  const CellsAt& at;
  C* scratch;
  i64 unit, feature;

  // Of an operand, of `columns` columns for each feature, that of a gate at a position.
  template <class T>
  __device__ C operand(const T* array, i64 stride, i64 columns, i64 gate, i64 position) const {
    const i64 row = unit % at.local * at.positions + position;
    return static_cast<C>(array[unit / at.local * stride + (row * columns + gate) * at.features + feature]);
  }
  // Of a result at this position.
  template <class T>
  __device__ void set(T* array, i64 columns, i64 gate, C value) const {
    array[((unit * at.positions + at.position) * columns + gate) * at.features + feature] = static_cast<T>(value);
  }
  // Zero at the first step.
  __device__ C product(i64 columns, i64 gate) const {
    return at.is_multiplied != 0 ? scratch[(unit * columns + gate) * at.features + feature] : C{};
  }
  // What the step before has left behind the products of all examples.
  __device__ C& left(i64 columns) const { return scratch[at.count * columns + unit * at.features + feature]; }
  __device__ C left_or_zero(i64 columns) const { return at.is_multiplied != 0 ? left(columns) : C{}; }
};

template <class C, class F>
__device__ void for_each_cell(const CellsAt& at, C* scratch, F&& f) {
  for_each_index(at.count, [&](i64 i) { f(CellPlace<C>{at, scratch, i / at.features, i % at.features}); });
}

template <class T>
__device__ void lstm_cells(T* out, T* cells, T* gates, const T* x, Computed<T>* scratch, const CellsAt& at,
                           i64 x_stride) {
  using C = Computed<T>;
  for_each_cell(at, scratch, [&](const CellPlace<C>& here) {
    C sums[4];
    for (i64 gate = 0; gate < 4; ++gate) {
      sums[gate] = here.operand(x, x_stride, 4, gate, at.position) + here.product(4, gate);
    }
    const LstmCell<C> found(sums, here.left_or_zero(4));
    for (i64 gate = 0; gate < 4; ++gate) here.set(gates, 4, gate, found.gates[gate]);
    here.set(cells, 1, 0, found.cell);
    here.set(out, 1, 0, found.out);
    here.left(4) = found.cell;
  });
}

template <class T>
__device__ void lstm_cell_gradients(T* dx, const T* cells, const T* gates, const T* dout, Computed<T>* scratch,
                                    const CellsAt& at, i64 cells_stride, i64 gates_stride, i64 dout_stride) {
  using C = Computed<T>;
  for_each_cell(at, scratch, [&](const CellPlace<C>& here) {
    C given[4];
    for (i64 gate = 0; gate < 4; ++gate) given[gate] = here.operand(gates, gates_stride, 4, gate, at.position);
    const C before = at.before >= 0 ? here.operand(cells, cells_stride, 1, 0, at.before) : C{};
    const C all = here.operand(dout, dout_stride, 1, 0, at.position) + here.product(1, 0);
    const LstmCellGradient<C> found(given, here.operand(cells, cells_stride, 1, 0, at.position), before, all,
                                    here.left_or_zero(1));
    for (i64 gate = 0; gate < 4; ++gate) here.set(dx, 4, gate, found.gates[gate]);
    here.left(1) = found.cell;
  });
}

template <class T>
__device__ void gru_cells(T* out, T* gates, const T* x, const T* bias, Computed<T>* scratch, const CellsAt& at,
                          i64 x_stride, i64 bias_stride) {
  using C = Computed<T>;
  for_each_cell(at, scratch, [&](const CellPlace<C>& here) {
    C inputs[3];
    for (i64 gate = 0; gate < 3; ++gate) inputs[gate] = here.operand(x, x_stride, 3, gate, at.position);
    const C own = static_cast<C>(bias[here.unit / at.local * bias_stride + here.feature]);
    const GruCell<C> found(inputs[0] + here.product(3, 0), inputs[1] + here.product(3, 1), inputs[2],
                           own + here.product(3, 2), here.left_or_zero(3));
    for (i64 gate = 0; gate < 4; ++gate) here.set(gates, 4, gate, found.gates[gate]);
    here.set(out, 1, 0, found.out);
    here.left(3) = found.out;
  });
}

template <class T>
__device__ void gru_cell_gradients(T* dx, T* dproducts, const T* out, const T* gates, const T* dout,
                                   Computed<T>* scratch, const CellsAt& at, i64 out_stride, i64 gates_stride,
                                   i64 dout_stride) {
  using C = Computed<T>;
  for_each_cell(at, scratch, [&](const CellPlace<C>& here) {
    C given[4];
    for (i64 gate = 0; gate < 4; ++gate) given[gate] = here.operand(gates, gates_stride, 4, gate, at.position);
    const C before = at.before >= 0 ? here.operand(out, out_stride, 1, 0, at.before) : C{};
    const C from_behind = here.left_or_zero(1) + here.product(1, 0);
    const GruCellGradient<C> found(given, before, here.operand(dout, dout_stride, 1, 0, at.position) + from_behind);
    for (i64 gate = 0; gate < 3; ++gate) {
      here.set(dx, 3, gate, found.inputs[gate]);
      here.set(dproducts, 3, gate, gate < 2 ? found.inputs[gate] : found.product);
    }
    here.left(1) = found.hidden;
  });
}

#define PMAPTRAIN_CELLS i64 count, i64 local, i64 positions, i64 features, i64 position, i64 before, i64 is_multiplied
#define PMAPTRAIN_CELLS_OF \
  CellsAt { count, local, positions, features, position, before, is_multiplied }

#define PMAPTRAIN_KERNEL(name, T)                                                                                      \
  extern "C" __global__ void name##_##T(T* out, T* cells, T* gates, const T* x, Computed<T>* scratch, PMAPTRAIN_CELLS, \
                                        i64 x_stride) {                                                                \
    lstm_cells(out, cells, gates, x, scratch, PMAPTRAIN_CELLS_OF, x_stride);                                           \
  }
PMAPTRAIN_FLOATING(PMAPTRAIN_KERNEL, lstm)
#undef PMAPTRAIN_KERNEL
#define PMAPTRAIN_KERNEL(name, T)                                                                                      \
  extern "C" __global__ void name##_##T(T* dx, const T* cells, const T* gates, const T* dout, Computed<T>* scratch,    \
                                        PMAPTRAIN_CELLS, i64 cells_stride, i64 gates_stride, i64 dout_stride) {        \
    lstm_cell_gradients(dx, cells, gates, dout, scratch, PMAPTRAIN_CELLS_OF, cells_stride, gates_stride, dout_stride); \
  }
PMAPTRAIN_FLOATING(PMAPTRAIN_KERNEL, lstm_grad)
#undef PMAPTRAIN_KERNEL
#define PMAPTRAIN_KERNEL(name, T)                                                                          \
  extern "C" __global__ void name##_##T(T* out, T* gates, const T* x, const T* bias, Computed<T>* scratch, \
                                        PMAPTRAIN_CELLS, i64 x_stride, i64 bias_stride) {                  \
    gru_cells(out, gates, x, bias, scratch, PMAPTRAIN_CELLS_OF, x_stride, bias_stride);                    \
  }
PMAPTRAIN_FLOATING(PMAPTRAIN_KERNEL, gru)
#undef PMAPTRAIN_KERNEL
#define PMAPTRAIN_KERNEL(name, T)                                                                                \
  extern "C" __global__ void name##_##T(T* dx, T* dproducts, const T* out, const T* gates, const T* dout,        \
                                        Computed<T>* scratch, PMAPTRAIN_CELLS, i64 out_stride, i64 gates_stride, \
                                        i64 dout_stride) {                                                       \
    gru_cell_gradients(dx, dproducts, out, gates, dout, scratch, PMAPTRAIN_CELLS_OF, out_stride, gates_stride,   \
                       dout_stride);                                                                             \
  }
PMAPTRAIN_FLOATING(PMAPTRAIN_KERNEL, gru_grad)
#undef PMAPTRAIN_KERNEL
#undef PMAPTRAIN_CELLS
#undef PMAPTRAIN_CELLS_OF

}  // namespace pmaptrain::ops::device
