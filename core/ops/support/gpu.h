// Helpers for the gpu() functions of ops, which build launches of the kernels in core/ops/gpu_kernels.h.
//
// The parameters of a kernel are the addresses of results, then of operands, then numbers of type std::int64_t or
// double. Grids depend only on shapes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "core/kernel/gpu.h"
#include "core/ops/gpu_kernels.h"

namespace pmaptrain::ops {

// The whole equation by one command: generated code, or a call of a library. Nothing where its results have no
// elements.
GpuKernel generated_kernel(const GpuRequest& request);
GpuKernel one_command(const GpuRequest& request, GpuCommand command);

bool has_no_results(const GpuRequest& request);

// The distance, in elements, between the slices of successive devices; 0 if the operand is not stacked.
std::int64_t device_stride(const GpuRequest& request, std::size_t operand);

inline std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
inline GpuArgument number(std::int64_t value) { return GpuArgument::of(value); }

// The name "base_suffix" in the list of kernels, which must contain it.
std::string_view kernel_name(std::string_view base, std::string_view suffix);
std::string_view kernel_name(std::string_view base, DType dtype);
// The name of the kernel for elements of this size.
std::string_view word_name(std::string_view base, DType dtype);

// A launch of a kernel that processes `count` elements with any number of threads.
GpuLaunch launch_elements(std::string_view kernel, std::int64_t count, std::vector<GpuArgument> arguments);
// A launch of a kernel that processes `count` units with any number of blocks of `threads` threads.
GpuLaunch launch_blocks(std::string_view kernel, std::int64_t count, unsigned threads,
                        std::vector<GpuArgument> arguments);

// A dimension of a copy: its size, and the distances, in elements, between indices on both sides.
struct CopyDim {
  std::int64_t size = 1, to = 0, from = 0;
};
// The maximum rank of a value, and one dimension for the devices.
inline constexpr std::size_t copy_dims = 9;

// Copies a box, outermost dimension first. Dimensions that are contiguous on both sides are joined.
GpuLaunch launch_copy(DType dtype, GpuArgument to, GpuArgument from, std::vector<CopyDim> dims);
// Sets all bits of `count` elements to zero.
GpuLaunch launch_zeros(DType dtype, GpuArgument to, std::int64_t count);
GpuLaunch launch_fill(DType dtype, GpuArgument to, std::int64_t count, std::uint64_t bits);

// Copies a box from operand 0 to result 0 for every device. `sizes` is the box; each side has strides and the offset of
// the first element.
struct Side {
  std::span<const std::int64_t> strides;
  std::int64_t offset = 0;
};
GpuLaunch launch_box(const GpuRequest& request, std::span<const std::int64_t> sizes, Side to, Side from);

// Sets all results to zero.
GpuKernel zeros_kernel(const GpuRequest& request);

}  // namespace pmaptrain::ops
