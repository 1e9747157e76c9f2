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

// The order in which arrays are reduced, from left to right. Those of a node are reduced one after another; then the
// last two results are reduced to one until `kept` are left. (sums_kept() of core/mesh/blocks.h is the case of a tree.)
inline constexpr int most_nodes = 64;
inline constexpr int most_kept = 8;  // with the next node's result
struct AdditionOrder {
  int nodes = 0;
  int operands[most_nodes] = {};
  std::int8_t kept[most_nodes] = {};

  static AdditionOrder one_after_another(int count) { return {1, {count}, {1}}; }
};

// Loads the code of all reductions. Otherwise CUDA would load it at the first call, which is forbidden during a
// capture.
cudaError_t load_reductions();

// Reduces each element of the arrays to the sum, the maximum or the minimum. Elements of bf16 are added in f32 and
// rounded once; sums of integers wrap. `to` may be one of the arrays. Precondition: `dtype` is not boolean.
cudaError_t reduce(ReductionKind kind, DType dtype, std::byte* to, ArrayGrid from, std::int64_t elements,
                   const AdditionOrder& order, cudaStream_t stream);
cudaError_t reduce(ReductionKind kind, DType dtype, std::byte* to, const Scattered& from, std::int64_t elements,
                   const AdditionOrder& order, cudaStream_t stream);

}  // namespace pmaptrain::cuda
