// The plain product of two matrices.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/ops/matmul/inner.h"

namespace pmaptrain::ops {

// c [m,n] = a [m,k] · b [k,n]. With transpose_a the first matrix is stored as [k,m], with transpose_b the second as
// [n,k].
//
// Each element is summed over k in an order that depends only on k, so the result of a row does not depend on the
// number of rows.
template <class T>
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, bool transpose_a, const T* b,
              bool transpose_b, T* c) {
  if (n == 1 && transpose_a) {  // b is a column, so the rows of a can be read in memory order
    std::fill(c, c + m, T{});
    for (std::int64_t p = 0; p < k; ++p) axpy(m, b[p], a + p * m, c);
  } else if (n == 1) {
    for (std::int64_t i = 0; i < m; ++i) {
      T sum{};
      for (std::int64_t p = 0; p < k; ++p) sum = multiply_add(sum, a[i * k + p], b[p]);
      c[i] = sum;
    }
  } else if (!transpose_b) {
    std::fill(c, c + m * n, T{});
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t p = 0; p < k; ++p) axpy(n, transpose_a ? a[p * m + i] : a[i * k + p], b + p * n, c + i * n);
    }
  } else if (!transpose_a) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) c[i * n + j] = dot(k, a + i * k, b + j * k);
    }
  } else {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        T sum{};
        for (std::int64_t p = 0; p < k; ++p) sum = multiply_add(sum, a[p * m + i], b[j * k + p]);
        c[i * n + j] = sum;
      }
    }
  }
}

}  // namespace pmaptrain::ops
