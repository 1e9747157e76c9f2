// Elementwise sums, maxima and minima of several arrays, for Device::reduce() and for collectives of virtual GPUs.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"

namespace pmaptrain::cuda {

enum class ReductionKind : std::uint8_t { sum, max, min };

// Arrays in a grid, as gpu::SpacedArrays describes them, from the address `begin` on.
struct ArrayGrid {
  const std::byte* begin = nullptr;
  std::int64_t per_row = 1;
  std::size_t pitch = 0, row_pitch = 0;
};
// Arrays at arbitrary addresses.
inline constexpr int most_arrays = 64;
struct Scattered {
  const std::byte* begin[most_arrays] = {};
};

// Loads the code of all reductions. Otherwise CUDA would load it at the first call, which is forbidden during a
// capture.
cudaError_t load_reductions();

// Computes to[i] = ((from[0][i] + from[1][i]) + from[2][i]) + ... over `count` arrays, or their maximum or minimum.
// Elements of bf16 are added in f32 and rounded once; sums of integers wrap. `to` may be one of the arrays.
// Precondition: `dtype` is not boolean, and `count` >= 1.
cudaError_t reduce(ReductionKind kind, DType dtype, std::byte* to, ArrayGrid from, std::int64_t elements,
                   std::int64_t count, cudaStream_t stream);
cudaError_t reduce(ReductionKind kind, DType dtype, std::byte* to, const Scattered& from, std::int64_t elements,
                   std::int64_t count, cudaStream_t stream);

}  // namespace pmaptrain::cuda
