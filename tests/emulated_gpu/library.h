// What a library carries out, from what it is told alone: no shape or attribute of the op is looked at.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "core/kernel/gpu.h"

namespace pmaptrain::emulation {

using RunCommand = std::function<void(std::span<const std::byte* const> operands, std::span<std::byte* const> results)>;

// By the references of the ops that these describe. The request says where the slices of a logical device begin.
RunCommand run_by_library(const GpuMatmul& product, const GpuRequest& request);
RunCommand run_by_library(const GpuConv& conv, const GpuRequest& request);

}  // namespace pmaptrain::emulation
