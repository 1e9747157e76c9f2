// Vectorized sums of f32 rows, in the order of SumReducer, so with equal results.
#pragma once

#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include "core/kernel/vector_math.h"
#include "core/kernel/vector_product.h"
#include "core/ops/reduce/loops.h"

namespace pmaptrain::ops {

struct VectorSumReducer : SumReducer {
  static void add_rows(std::size_t rows, std::size_t width, const float* x, float* out) {
    vector_add_rows(rows, width, x, out);
  }
  static float contiguous(std::size_t n, const float* x) { return vector_sum(n, x); }
};

}  // namespace pmaptrain::ops

#endif  // PMAPTRAIN_REFERENCE_KERNELS
