// Matrix products on a GPU.
#pragma once

#include "core/ops/support/gpu.h"

namespace pmaptrain::ops {

// y [matrices, m, n] from a and b [matrices, ...] on each device. A third operand is the bias.
struct GpuProduct {
  std::int64_t matrices = 1, m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false, relu = false;

  // Of floating elements, k > 0.
  GpuMatmul by_library(const GpuRequest& request) const;
  // For what libraries leave: integers, and contractions over nothing.
  GpuKernel launch(const GpuRequest& request) const;
};

// Whether a library supports products of this element type.
inline bool in_libraries(DType dtype) { return is_floating(dtype); }

}  // namespace pmaptrain::ops
