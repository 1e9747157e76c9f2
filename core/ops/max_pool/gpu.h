// Arguments of the GPU kernels for pooling (core/ops/max_pool/slide.cuh).
#pragma once

#include "core/ops/max_pool/geometry.h"
#include "core/ops/support/gpu.h"

namespace pmaptrain::ops {

// Appends the geometry of a Pool of `images` images, and whether 32 bits suffice for its indices.
void add_pool(std::vector<GpuArgument>& arguments, const PoolGeometry& geometry, std::int64_t images);
// The number of images of an operand on all devices.
GpuArgument images(const GpuRequest& request, std::size_t operand);

}  // namespace pmaptrain::ops
