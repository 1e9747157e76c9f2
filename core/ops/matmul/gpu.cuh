// A plain matrix product for integers, which the libraries do not support, and for contractions over nothing.
#pragma once

#include "core/ops/matmul/inner.h"
#include "core/ops/support/device.cuh"

namespace pmaptrain::ops::device {

// The layout of matrices in a batch: distances between rows, columns and matrices.
struct Matrix {
  i64 row, column, next;
};

// y[i,j] = epilogue(the sum of a[i,p] b[p,j] over p in order), for `matrices` products with m rows and n columns. The
// bias has the operands' type, or f32 if `wide_bias`; a null address means no bias. Each device has its own bias,
// `bias_next` elements after the previous one.
template <class To, class T>
__device__ void multiply(To* y, const T* a, const T* b, const void* bias, i64 count, i64 m, i64 n, i64 k, Matrix at_a,
                         Matrix at_b, i64 biases, i64 wide_bias, i64 bias_next, i64 relu) {
  using C = Computed<T>;
  for_each_index(count, [&](i64 i) {
    const i64 column = i % n, row = i / n % m, matrix = i / n / m;
    // These are offsets, not pointers: if k is 0 there are no arrays.
    const i64 from_a = matrix * at_a.next + row * at_a.row, from_b = matrix * at_b.next + column * at_b.column;
    C sum{};
    for (i64 p = 0; p < k; ++p) {
      sum = multiply_add<C>(sum, static_cast<C>(a[from_a + p * at_a.column]), static_cast<C>(b[from_b + p * at_b.row]));
    }
    if (biases != 0) {
      const i64 place = matrix * bias_next + column;
      const C addend = wide_bias != 0 ? static_cast<C>(static_cast<const float*>(bias)[place])
                                      : static_cast<C>(static_cast<const T*>(bias)[place]);
      sum = wrapping_add(sum, addend);
    }
    if constexpr (std::is_signed_v<C>) {
      if (relu != 0) sum = C{0} > sum ? C{0} : sum;
    }
    y[i] = static_cast<To>(sum);
  });
}

#define PMAPTRAIN_PRODUCT(symbol, To, T)                                                                             \
  extern "C" __global__ void symbol(To* y, const T* a, const T* b, const void* bias, i64 count, i64 m, i64 n, i64 k, \
                                    i64 a_row, i64 a_column, i64 a_next, i64 b_row, i64 b_column, i64 b_next,        \
                                    i64 biases, i64 wide_bias, i64 bias_next, i64 relu) {                            \
    multiply(y, a, b, bias, count, m, n, k, {a_row, a_column, a_next}, {b_row, b_column, b_next}, biases, wide_bias, \
             bias_next, relu);                                                                                       \
  }
#define PMAPTRAIN_KERNEL(name, T) PMAPTRAIN_PRODUCT(name##_##T, T, T)
PMAPTRAIN_NUMBERS(PMAPTRAIN_KERNEL, product)
PMAPTRAIN_PRODUCT(product_bf16_to_f32, float, bf16)
#undef PMAPTRAIN_KERNEL
#undef PMAPTRAIN_PRODUCT

}  // namespace pmaptrain::ops::device
