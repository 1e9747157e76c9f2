// The plain product of two matrices.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/ops/matmul/inner.h"

namespace pmaptrain::ops {

// c [m,n] = a [m,k] · b [k,n], the first stored as [k,m] with transpose_a, the second as [n,k] with transpose_b.
//
// Every element is summed over k in an order that depends on k alone, so a row's bits do not depend on how many rows
// there are.
template <class T>
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, bool transpose_a, const T* b,
              bool transpose_b, T* c) {
  if (n == 1 && transpose_a) {  // a column of b: rows of a, one after another, as they lie
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
