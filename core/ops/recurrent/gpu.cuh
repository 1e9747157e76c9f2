// The recurrences of an LSTM and of a GRU: a block of threads for an example, which goes through its positions; a
// thread has some of the features. What a step leaves for the next one is in scratch memory, twice, so that one barrier
// a step is enough. Sums are added in the reference's order.
#pragma once

#include "core/ops/matmul/inner.h"
#include "core/ops/recurrent/cell.h"
#include "core/ops/support/device.cuh"

namespace pmaptrain::ops::device {

// Where an example's arrays begin. Each device has `local` examples.
struct RecurrentArrays {
  i64 local, positions, features, reverse;

  __device__ i64 position(i64 step) const { return Steps{positions, reverse != 0}.at(step); }
  template <class T>
  __device__ const T* example(const T* array, i64 stride, i64 unit, i64 columns) const {
    return array + unit / local * stride + unit % local * positions * columns * features;
  }
  template <class T>
  __device__ T* result(T* array, i64 unit, i64 columns) const {
    return array + unit * positions * columns * features;
  }
  // Calls f(feature) for those of this thread.
  template <class F>
  __device__ void for_each_feature(F&& f) const {
    for (i64 feature = threadIdx.x; feature < features; feature += blockDim.x) f(feature);
  }
};

// Column `column` of the product of a row of n elements with a matrix of `columns` columns.
template <class T>
__device__ Computed<T> product_with_column(i64 n, const Computed<T>* row, const T* matrix, i64 columns, i64 column) {
  Computed<T> sum{};
  for (i64 k = 0; k < n; ++k) sum = multiply_add(sum, row[k], static_cast<Computed<T>>(matrix[k * columns + column]));
  return sum;
}

// Of `scratch`, an example has 3 F elements: out of two steps, and the cell.
template <class T>
__device__ void lstm_of_block(T* out, T* cells, T* gates, const T* x, const T* kernel, Computed<T>* scratch, i64 count,
                              const RecurrentArrays& a, i64 x_stride, i64 kernel_stride) {
  using C = Computed<T>;
  const i64 features = a.features, columns = 4 * features;
  for_each_block(count, [&](i64 unit) {
    const T* const x_here = a.example(x, x_stride, unit, 4);
    const T* const matrix = kernel + unit / a.local * kernel_stride;
    C *const states = scratch + unit * 3 * features, *const cell = states + 2 * features;
    for (i64 step = 0; step < a.positions; ++step) {
      const i64 position = a.position(step);
      const C* const before = states + step % 2 * features;
      C* const after = states + (step + 1) % 2 * features;
      a.for_each_feature([&](i64 f) {
        C sums[4];
        for (i64 gate = 0; gate < 4; ++gate) {
          const i64 column = gate * features + f;
          const C product = step > 0 ? product_with_column(features, before, matrix, columns, column) : C{};
          sums[gate] = static_cast<C>(x_here[position * columns + column]) + product;
        }
        const LstmCell<C> found(sums, step > 0 ? cell[f] : C{});
        for (i64 gate = 0; gate < 4; ++gate) {
          a.result(gates, unit, 4)[position * columns + gate * features + f] = static_cast<T>(found.gates[gate]);
        }
        a.result(cells, unit, 1)[position * features + f] = static_cast<T>(found.cell);
        a.result(out, unit, 1)[position * features + f] = static_cast<T>(found.out);
        cell[f] = found.cell;
        after[f] = found.out;
      });
      __syncthreads();
    }
  });
}

// Of `scratch`, an example has 9 F elements: dx of two steps, and the cotangent of the cell.
template <class T>
__device__ void lstm_gradient_of_block(T* dx, const T* kernel, const T* cells, const T* gates, const T* dout,
                                       Computed<T>* scratch, i64 count, const RecurrentArrays& a, i64 kernel_stride,
                                       i64 cells_stride, i64 gates_stride, i64 dout_stride) {
  using C = Computed<T>;
  const i64 features = a.features, columns = 4 * features;
  for_each_block(count, [&](i64 unit) {
    const T* const matrix = kernel + unit / a.local * kernel_stride;
    const T* const cells_here = a.example(cells, cells_stride, unit, 1);
    const T* const gates_here = a.example(gates, gates_stride, unit, 4);
    const T* const dout_here = a.example(dout, dout_stride, unit, 1);
    C *const sums = scratch + unit * 9 * features, *const dcell = sums + 2 * columns;
    for (i64 step = a.positions - 1; step >= 0; --step) {
      const i64 position = a.position(step);
      const bool is_last = step == a.positions - 1;
      const C* const behind = sums + (step + 1) % 2 * columns;
      C* const here = sums + step % 2 * columns;
      a.for_each_feature([&](i64 f) {
        const C product = is_last ? C{} : product_with_column(columns, behind, matrix, features, f);
        C given[4];
        for (i64 gate = 0; gate < 4; ++gate) {
          given[gate] = static_cast<C>(gates_here[position * columns + gate * features + f]);
        }
        const C before = step > 0 ? static_cast<C>(cells_here[a.position(step - 1) * features + f]) : C{};
        const LstmCellGradient<C> found(given, static_cast<C>(cells_here[position * features + f]), before,
                                        static_cast<C>(dout_here[position * features + f]) + product,
                                        is_last ? C{} : dcell[f]);
        for (i64 gate = 0; gate < 4; ++gate) {
          here[gate * features + f] = found.gates[gate];
          a.result(dx, unit, 4)[position * columns + gate * features + f] = static_cast<T>(found.gates[gate]);
        }
        dcell[f] = found.cell;
      });
      __syncthreads();
    }
  });
}

// Of `scratch`, an example has 2 F elements: out of two steps.
template <class T>
__device__ void gru_of_block(T* out, T* gates, const T* x, const T* kernel, const T* bias, Computed<T>* scratch,
                             i64 count, const RecurrentArrays& a, i64 x_stride, i64 kernel_stride, i64 bias_stride) {
  using C = Computed<T>;
  const i64 features = a.features, columns = 3 * features;
  for_each_block(count, [&](i64 unit) {
    const T* const x_here = a.example(x, x_stride, unit, 3);
    const T* const matrix = kernel + unit / a.local * kernel_stride;
    const T* const bias_here = bias + unit / a.local * bias_stride;
    C* const states = scratch + unit * 2 * features;
    for (i64 step = 0; step < a.positions; ++step) {
      const i64 position = a.position(step);
      const C* const before = states + step % 2 * features;
      C* const after = states + (step + 1) % 2 * features;
      a.for_each_feature([&](i64 f) {
        C inputs[3], products[3];
        for (i64 gate = 0; gate < 3; ++gate) {
          const i64 column = gate * features + f;
          inputs[gate] = static_cast<C>(x_here[position * columns + column]);
          products[gate] = step > 0 ? product_with_column(features, before, matrix, columns, column) : C{};
        }
        const GruCell<C> found(inputs[0] + products[0], inputs[1] + products[1], inputs[2],
                               static_cast<C>(bias_here[f]) + products[2], step > 0 ? before[f] : C{});
        for (i64 gate = 0; gate < 4; ++gate) {
          a.result(gates, unit, 4)[(position * 4 + gate) * features + f] = static_cast<T>(found.gates[gate]);
        }
        a.result(out, unit, 1)[position * features + f] = static_cast<T>(found.out);
        after[f] = found.out;
      });
      __syncthreads();
    }
  });
}

// Of `scratch`, an example has 7 F elements: the cotangents of products of two steps, and that of out without products.
template <class T>
__device__ void gru_gradient_of_block(T* dx, T* dproducts, const T* kernel, const T* out, const T* gates, const T* dout,
                                      Computed<T>* scratch, i64 count, const RecurrentArrays& a, i64 kernel_stride,
                                      i64 out_stride, i64 gates_stride, i64 dout_stride) {
  using C = Computed<T>;
  const i64 features = a.features, columns = 3 * features;
  for_each_block(count, [&](i64 unit) {
    const T* const matrix = kernel + unit / a.local * kernel_stride;
    const T* const out_here = a.example(out, out_stride, unit, 1);
    const T* const gates_here = a.example(gates, gates_stride, unit, 4);
    const T* const dout_here = a.example(dout, dout_stride, unit, 1);
    C *const products = scratch + unit * 7 * features, *const dhidden = products + 2 * columns;
    for (i64 step = a.positions - 1; step >= 0; --step) {
      const i64 position = a.position(step);
      const bool is_last = step == a.positions - 1;
      const C* const behind = products + (step + 1) % 2 * columns;
      C* const here = products + step % 2 * columns;
      a.for_each_feature([&](i64 f) {
        C given[4];
        for (i64 gate = 0; gate < 4; ++gate) {
          given[gate] = static_cast<C>(gates_here[(position * 4 + gate) * features + f]);
        }
        const C before = step > 0 ? static_cast<C>(out_here[a.position(step - 1) * features + f]) : C{};
        const C product = is_last ? C{} : product_with_column(columns, behind, matrix, features, f);
        const C from_behind = (is_last ? C{} : dhidden[f]) + product;
        const GruCellGradient<C> found(given, before, static_cast<C>(dout_here[position * features + f]) + from_behind);
        for (i64 gate = 0; gate < 3; ++gate) {
          const C of_product = gate < 2 ? found.inputs[gate] : found.product;
          const i64 at = position * columns + gate * features + f;
          a.result(dx, unit, 3)[at] = static_cast<T>(found.inputs[gate]);
          a.result(dproducts, unit, 3)[at] = static_cast<T>(of_product);
          here[gate * features + f] = of_product;
        }
        dhidden[f] = found.hidden;
      });
      __syncthreads();
    }
  });
}

#define PMAPTRAIN_RECURRENT_SIZES i64 count, i64 local, i64 positions, i64 features, i64 reverse
#define PMAPTRAIN_RECURRENT_SIZES_OF \
  RecurrentArrays { local, positions, features, reverse }

#define PMAPTRAIN_KERNEL(name, T)                                                                                      \
  extern "C" __global__ void name##_##T(T* out, T* cells, T* gates, const T* x, const T* kernel, Computed<T>* scratch, \
                                        PMAPTRAIN_RECURRENT_SIZES, i64 x_stride, i64 kernel_stride) {                  \
    lstm_of_block(out, cells, gates, x, kernel, scratch, count, PMAPTRAIN_RECURRENT_SIZES_OF, x_stride,                \
                  kernel_stride);                                                                                      \
  }
PMAPTRAIN_FLOATING(PMAPTRAIN_KERNEL, lstm)
#undef PMAPTRAIN_KERNEL
#define PMAPTRAIN_KERNEL(name, T)                                                                              \
  extern "C" __global__ void name##_##T(T* dx, const T* kernel, const T* cells, const T* gates, const T* dout, \
                                        Computed<T>* scratch, PMAPTRAIN_RECURRENT_SIZES, i64 kernel_stride,    \
                                        i64 cells_stride, i64 gates_stride, i64 dout_stride) {                 \
    lstm_gradient_of_block(dx, kernel, cells, gates, dout, scratch, count, PMAPTRAIN_RECURRENT_SIZES_OF,       \
                           kernel_stride, cells_stride, gates_stride, dout_stride);                            \
  }
PMAPTRAIN_FLOATING(PMAPTRAIN_KERNEL, lstm_grad)
#undef PMAPTRAIN_KERNEL
#define PMAPTRAIN_KERNEL(name, T)                                                                                    \
  extern "C" __global__ void name##_##T(T* out, T* gates, const T* x, const T* kernel, const T* bias,                \
                                        Computed<T>* scratch, PMAPTRAIN_RECURRENT_SIZES, i64 x_stride,               \
                                        i64 kernel_stride, i64 bias_stride) {                                        \
    gru_of_block(out, gates, x, kernel, bias, scratch, count, PMAPTRAIN_RECURRENT_SIZES_OF, x_stride, kernel_stride, \
                 bias_stride);                                                                                       \
  }
PMAPTRAIN_FLOATING(PMAPTRAIN_KERNEL, gru)
#undef PMAPTRAIN_KERNEL
#define PMAPTRAIN_KERNEL(name, T)                                                                                \
  extern "C" __global__ void name##_##T(T* dx, T* dproducts, const T* kernel, const T* out, const T* gates,      \
                                        const T* dout, Computed<T>* scratch, PMAPTRAIN_RECURRENT_SIZES,          \
                                        i64 kernel_stride, i64 out_stride, i64 gates_stride, i64 dout_stride) {  \
    gru_gradient_of_block(dx, dproducts, kernel, out, gates, dout, scratch, count, PMAPTRAIN_RECURRENT_SIZES_OF, \
                          kernel_stride, out_stride, gates_stride, dout_stride);                                 \
  }
PMAPTRAIN_FLOATING(PMAPTRAIN_KERNEL, gru_grad)
#undef PMAPTRAIN_KERNEL

}  // namespace pmaptrain::ops::device
