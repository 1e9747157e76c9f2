// Kernels around the calls of libraries: what libraries do not do, or not as the ops define it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"

namespace pmaptrain::cuda {

// A matrix of floating elements, one row after another.
struct FloatingMatrix {
  DType dtype = DType::f32;
  std::byte* data = nullptr;
};

// to[r, c] = relu(from[r, c] + bias[c]), computed in f32 (f64 where `to` is f64) and rounded once. `bias` may be null,
// and `to` may be `from` where their types are equal. A NaN stays: libraries compute relu as a maximum that drops it.
struct Finish {
  FloatingMatrix to, from, bias;
  bool relu = false;
  std::int64_t rows = 0, columns = 0;
};
cudaError_t finish(const Finish& what, cudaStream_t stream);

// The transpose of a matrix, by elements of 2, 4 or 8 bytes. The kernel of a convolution [H, W, I, O], seen as
// [HWI, O], becomes [O, H, W, I], the layout that libraries are made for.
cudaError_t transpose(std::byte* to, const std::byte* from, std::int64_t rows, std::int64_t columns,
                      std::size_t element_bytes, cudaStream_t stream);

// to[c] = the sum over r of from[r, c]. Rows are cut into parts by their number alone, and the parts' sums, in
// `workspace`, are added in order.
std::size_t column_sums_workspace(DType from, std::int64_t rows, std::int64_t columns);
cudaError_t column_sums(FloatingMatrix to, FloatingMatrix from, std::int64_t rows, std::int64_t columns,
                        std::byte* workspace, cudaStream_t stream);

}  // namespace pmaptrain::cuda
