#include <algorithm>

#include "core/ops/matmul/inner.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/support/epilogue.h"

namespace pmaptrain::ops {
namespace {

// Every element is summed over k in an order that depends on k alone, so a row's bits do not depend on how many rows
// there are.
template <class T>
void multiply(const ConstArray& a_array, const ConstArray& b_array, const Array& c_array, bool transpose_a,
              bool transpose_b) {
  const T* a = a_array.as<T>();
  const T* b = b_array.as<T>();
  T* c = c_array.as<T>();
  const std::int64_t m = c_array.shape()[0], n = c_array.shape()[1];
  const std::int64_t k = a_array.shape()[transpose_a ? 0 : 1];
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

}  // namespace

void Matmul::reference(const ReferenceCall& call) const {
  dispatch(call.results[0].dtype(), [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) {
      multiply<T>(call.operands[0], call.operands[1], call.results[0], transpose_a, transpose_b);
      const Shape& shape = call.results[0].shape();
      const T* bias = call.operands.size() == 3 ? call.operands[2].as<T>() : nullptr;
      add_bias_and_relu(shape[0], shape[1], bias, relu, call.results[0].as<T>());
    }
  });
}

}  // namespace pmaptrain::ops
