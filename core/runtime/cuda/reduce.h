// Elementwise sums, maxima and minima over arrays, in order: for Device::reduce(), and for collectives of virtual GPUs.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"

namespace pmaptrain::cuda {

enum class ReductionKind : std::uint8_t { sum, max, min };

// Arrays in evenly spaced rows; see gpu::Arrays.
struct EvenlySpaced {
  const std::byte* begin = nullptr;
  std::int64_t in_a_row = 1;
  std::size_t pitch = 0, row_pitch = 0;
};
// Arrays at arbitrary addresses.
inline constexpr int most_arrays = 64;
struct Scattered {
  const std::byte* begin[most_arrays] = {};
};

// Loads the code of all reductions, because loading it on the first call is forbidden during a capture.
cudaError_t load_reductions();

// Computes to[i] = ((from[0][i] + from[1][i]) + from[2][i]) + ... Elements of bf16 are added in f32 and rounded once;
// integers wrap. `to` may be one of the arrays. Precondition: the dtype is not boolean; count >= 1.
cudaError_t reduce(ReductionKind kind, DType dtype, std::byte* to, EvenlySpaced from, std::int64_t elements,
                   std::int64_t count, cudaStream_t stream);
cudaError_t reduce(ReductionKind kind, DType dtype, std::byte* to, const Scattered& from, std::int64_t elements,
                   std::int64_t count, cudaStream_t stream);

}  // namespace pmaptrain::cuda
