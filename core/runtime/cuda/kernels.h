// The project's own kernels, and those of the module: reductions of arrays, and what runs before or after a library's
// kernel, for what the library cannot do or does differently from the definition of the op.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/dtype.h"
#include "core/runtime/gpu/device.h"

namespace pmaptrain::cuda {

// Returns the kernel with this name (core/ops/gpu_kernels.cuh) as an argument of cudaLaunchKernel, or null if there is
// none.
const void* kernel_named(std::string_view name);

// A row-major matrix of floating-point elements; `data` may be null if there is none.
struct FloatingMatrix {
  DType dtype = DType::f32;
  std::byte* data = nullptr;
};

// Computes to[r, c] = relu(from[r, c] + bias[c]), in f32 (or f64 if `to` is f64), and rounds once. The relu is applied
// if `relu` is true; it keeps a NaN, while libraries compute relu as a maximum, which drops it. `bias` may be null.
// `to` and `from` may be the same memory if their types are equal.
struct Epilogue {
  FloatingMatrix to, from, bias;
  bool relu = false;
  std::int64_t rows = 0, columns = 0;
};
cudaError_t apply_epilogue(const Epilogue& what, cudaStream_t stream);

// Copies elements to another type.
cudaError_t convert(FloatingMatrix to, FloatingMatrix from, std::int64_t elements, cudaStream_t stream);

// Transposes the matrix `from` of so many rows and columns, and converts its elements to the type of `to`. For example,
// the kernel of a convolution [H, W, I, O], as a matrix [HWI, O], becomes [O, H, W, I], the layout that libraries
// prefer. `matrices` of them follow one another.
cudaError_t transpose(FloatingMatrix to, FloatingMatrix from, std::int64_t rows, std::int64_t columns,
                      cudaStream_t stream, std::int64_t matrices = 1);

// Computes to[c] = the sum over r of from[r, c]. The rows are divided into parts, in a way that depends only on their
// number. The sums of the parts are stored in `workspace` and then added in order. The first function returns the bytes
// of the workspace.
std::size_t column_sums_workspace(DType from, std::int64_t rows, std::int64_t columns);
cudaError_t column_sums(FloatingMatrix to, FloatingMatrix from, std::int64_t rows, std::int64_t columns,
                        std::byte* workspace, cudaStream_t stream);

using Reduction = gpu::Device::Reduction;

// The order in which arrays are reduced, from left to right. Those of a node are reduced one after another; then the
// last two results are reduced to one until `kept` are left. (sums_kept() of core/mesh/blocks.h is the case of a tree.)
inline constexpr int most_kept = 8;  // with the next node's result
struct AdditionOrder {
  int nodes = 0;
  int operands[gpu::Device::most_nodes] = {};
  std::int8_t kept[gpu::Device::most_nodes] = {};
};

// Loads the code of all reductions. Otherwise CUDA would load it at the first call, which is forbidden during a
// capture.
cudaError_t load_reductions();

// Reduces each element of the arrays of each of `all` to the sum, the maximum or the minimum. Elements of bf16 are
// added in f32 and rounded once; sums of integers wrap. Preconditions: those of gpu::Device::reduce(), and `dtype` is
// not boolean.
cudaError_t reduce(Reduction kind, DType dtype, std::span<const gpu::Addends> all, const AdditionOrder& order,
                   cudaStream_t stream);

}  // namespace pmaptrain::cuda
