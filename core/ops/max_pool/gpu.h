// What the GPU kernels of the poolings are given (core/ops/max_pool/slide.cuh).
#pragma once

#include "core/ops/max_pool/geometry.h"
#include "core/ops/support/gpu.h"

namespace pmaptrain::ops {

// Appends the geometry of a Pool.
void add_pool(std::vector<GpuArgument>& arguments, const PoolGeometry& geometry);
// The images that an operand has for all devices.
GpuArgument images(const GpuRequest& request, std::size_t operand);

}  // namespace pmaptrain::ops
