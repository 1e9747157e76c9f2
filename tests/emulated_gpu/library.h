// What emulated devices compute by the references of ops: what a library carries out, and reductions.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/runtime/gpu/device.h"
#include "tests/emulated_gpu/host_kernels.h"

namespace pmaptrain::emulation {

using RunCommand = std::function<void(const test::HostMemory& memory)>;

// From what the library is told alone: no shape or attribute of the op is looked at. The request says where the slices
// of a logical device begin.
RunCommand run_by_library(const GpuMatmul& product, const GpuRequest& request);
RunCommand run_by_library(const GpuConv& conv, const GpuRequest& request);
RunCommand run_by_library(const GpuAttention& attention, const GpuRequest& request);

// The arrays of a group, and the bytes of each.
std::vector<const std::byte*> arrays_of(const gpu::Addends& group);
std::size_t bytes_of(const gpu::Addends& group, DType dtype);
// Throws Error (failed) unless Device::reduce() may be called with these groups: as many arrays as the tree takes, and
// no result where another one, or what is read, is.
void check_groups(const std::string& what, std::span<const gpu::Addends> all, DType dtype,
                  std::span<const TreeNode> tree);

// The sum or extreme of whole arrays of `bytes` bytes, in the order in which they are given, or in that of `tree` where
// it has nodes. Throws Error (failed), which begins with `what`, where the values are no numbers that can be reduced
// so.
std::vector<std::byte> reduce_arrays(const std::string& what, gpu::Device::Reduction reduce, DType dtype,
                                     std::size_t bytes, std::span<const std::byte* const> arrays,
                                     std::span<const TreeNode> tree = {});

}  // namespace pmaptrain::emulation
