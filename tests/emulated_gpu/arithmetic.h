// What emulated devices compute themselves: sums and extremes of arrays, by the references of the collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/runtime/gpu/device.h"

namespace pmaptrain::emulation {

// Of whole arrays of `bytes` bytes, in the order in which they are given, or in that of `tree` where it has nodes.
// Throws Error (failed), which begins with `what`, where the values are no numbers that can be reduced so.
std::vector<std::byte> reduce_arrays(const std::string& what, gpu::Device::Reduction reduce, DType dtype,
                                     std::size_t bytes, std::span<const std::byte* const> arrays,
                                     std::span<const TreeNode> tree = {});

}  // namespace pmaptrain::emulation
