// Kernels for work that libraries do not do, or do differently from the definitions of the ops.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"

namespace pmaptrain::cuda {

// A row-major matrix of floating-point elements.
struct FloatingMatrix {
  DType dtype = DType::f32;
  std::byte* data = nullptr;
};

// Computes to[r, c] = relu(from[r, c] + bias[c]) in f32 (f64 if `to` is f64) and rounds once. `bias` may be null. `to`
// may equal `from` if their types are equal. A NaN is kept, while libraries compute relu as a maximum, which drops it.
struct Finish {
  FloatingMatrix to, from, bias;
  bool relu = false;
  std::int64_t rows = 0, columns = 0;
};
cudaError_t finish(const Finish& what, cudaStream_t stream);

// Transposes a matrix with elements of 2, 4 or 8 bytes. For example, the kernel of a convolution [H, W, I, O], as a
// matrix [HWI, O], becomes [O, H, W, I], the layout that libraries prefer.
cudaError_t transpose(std::byte* to, const std::byte* from, std::int64_t rows, std::int64_t columns,
                      std::size_t element_bytes, cudaStream_t stream);

// Computes to[c] = the sum over r of from[r, c]. Rows are divided into parts, which depends only on their number; the
// sums of the parts are stored in `workspace` and added in order.
std::size_t column_sums_workspace(DType from, std::int64_t rows, std::int64_t columns);
cudaError_t column_sums(FloatingMatrix to, FloatingMatrix from, std::int64_t rows, std::int64_t columns,
                        std::byte* workspace, cudaStream_t stream);

}  // namespace pmaptrain::cuda
