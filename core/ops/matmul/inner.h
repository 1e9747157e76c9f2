// The two inner loops of the plain kernels. The order of additions depends only on the length.
#pragma once

#include <cstdint>
#include <type_traits>

namespace pmaptrain::ops {

// Integers are computed as unsigned integers of at least 32 bits, so that overflow wraps. Narrower ones would be
// promoted to int.
template <class T>
constexpr T multiply_add(T sum, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
    return static_cast<T>(static_cast<U>(sum) + static_cast<U>(a) * static_cast<U>(b));
  } else {
    return sum + a * b;
  }
}

// Blocks of a constant length: g++ 12 vectorizes these at -O2, but not loops of unknown length.
inline constexpr std::int64_t lanes = 8;

// y[0..n) += a x[0..n); x and y do not overlap.
template <class T>
void axpy(std::int64_t n, T a, const T* __restrict x, T* __restrict y) {
  std::int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    for (std::int64_t l = 0; l < lanes; ++l) y[j + l] = multiply_add(y[j + l], a, x[j + l]);
  }
  for (; j < n; ++j) y[j] = multiply_add(y[j], a, x[j]);
}

// The sum of a[i] b[i], computed in `lanes` partial sums.
template <class T>
T dot(std::int64_t n, const T* __restrict a, const T* __restrict b) {
  T partial[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (std::int64_t l = 0; l < lanes; ++l) partial[l] = multiply_add(partial[l], a[i + l], b[i + l]);
  }
  T sum{};
  for (const T value : partial) sum = multiply_add(sum, T{1}, value);
  for (; i < n; ++i) sum = multiply_add(sum, a[i], b[i]);
  return sum;
}

}  // namespace pmaptrain::ops
