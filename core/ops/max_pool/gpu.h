// What the GPU kernels of the poolings are given (core/ops/max_pool/slide.cuh).
#pragma once

#include "core/ops/max_pool/geometry.h"
#include "core/ops/support/gpu.h"

namespace pmaptrain::ops {

// Appends the geometry of a Pool of so many images, and whether 32 bits are enough for its indices.
void add_pool(std::vector<GpuArgument>& arguments, const PoolGeometry& geometry, std::int64_t images);
// The images that an operand has for all devices.
GpuArgument images(const GpuRequest& request, std::size_t operand);

}  // namespace pmaptrain::ops
