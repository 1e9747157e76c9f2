// What the gpu() of the ops is made of: launches of the kernels in core/ops/gpu_kernels.h.
//
// A kernel's parameters are the addresses of results, then of operands, then numbers, each a std::int64_t (or a
// double). Grids follow from shapes alone.
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

// From one device's slice of an operand to the next, in elements.
std::int64_t device_stride(const GpuRequest& request, std::size_t operand);

inline GpuArgument number(std::int64_t value) { return GpuArgument::of(value); }

// The name "base_suffix" in the list of kernels, which must have it.
std::string_view kernel_name(std::string_view base, std::string_view suffix);
std::string_view kernel_name(std::string_view base, DType dtype);
// The one for elements of this size.
std::string_view word_name(std::string_view base, DType dtype);

// A launch of a kernel that takes up `count` elements by any number of threads.
GpuLaunch launch_elements(std::string_view kernel, std::int64_t count, std::vector<GpuArgument> arguments);
// Of one that takes up `count` units by any number of blocks of `threads`.
GpuLaunch launch_blocks(std::string_view kernel, std::int64_t count, unsigned threads,
                        std::vector<GpuArgument> arguments);

// One dimension of a copy: its size, and the elements from one index to the next on either side.
struct CopyDim {
  std::int64_t size = 1, to = 0, from = 0;
};
// As many as a value may have, and one for the devices.
inline constexpr std::size_t copy_dims = 9;

// A copy of a box, outermost dimension first. Dimensions that follow each other on both sides become one.
GpuLaunch launch_copy(DType dtype, GpuArgument to, GpuArgument from, std::vector<CopyDim> dims);
// `count` elements that are all bits zero.
GpuLaunch launch_zeros(DType dtype, GpuArgument to, std::int64_t count);
GpuLaunch launch_fill(DType dtype, GpuArgument to, std::int64_t count, std::uint64_t bits);

// The copy of a box from operand 0 to result 0 for every device: `sizes`, and on each side strides and the offset of
// the first element.
struct Side {
  std::span<const std::int64_t> strides;
  std::int64_t offset = 0;
};
GpuLaunch launch_box(const GpuRequest& request, std::span<const std::int64_t> sizes, Side to, Side from);

// All results as zeros.
GpuKernel zeros_kernel(const GpuRequest& request);

}  // namespace pmaptrain::ops
