// The epilogue of a convolution or a matrix product: a bias for each feature, and relu.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/graph/op.h"
#include "core/ops/support/arithmetic.h"

namespace pmaptrain::ops {

// Throws TypeError (rule 6) that names the op unless the bias is a vector of `features` elements with the type of the
// op's first operand, or f32 if that is bf16.
void expect_bias(std::string_view op, const Type& bias, DType operand, std::int64_t features);

// The cotangent of the only result before relu: it is passed where the result is positive (rule 5).
Value relu_cotangent(VjpContext& context);

// Adds `bias` (may be null) to each row of y, [rows, features], and then applies relu if `relu` is set. A NaN is kept.
template <class T>
void add_bias_and_relu(std::int64_t rows, std::int64_t features, const T* bias, bool relu, T* y) {
  for (std::int64_t r = 0; bias != nullptr && r < rows; ++r) {
    T* row = y + r * features;
    for (std::int64_t i = 0; i < features; ++i) row[i] = wrapping_add(row[i], bias[i]);
  }
  for (std::int64_t i = 0; relu && i < rows * features; ++i) y[i] = T{0} > y[i] ? T{0} : y[i];
}

}  // namespace pmaptrain::ops
