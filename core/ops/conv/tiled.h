// Gradients of convolutions with large kernels, for which the library has no fast primitive. The kernel is cut into
// tiles that the library supports. Each tile is a convolution over the part of the image that its taps reach.
#pragma once

#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include <memory>

#include "core/kernel/cpu.h"
#include "core/ops/conv/geometry.h"

namespace pmaptrain::ops {

// Whether the kernel of `g` is larger than a tile.
bool takes_tiles(const ConvGeometry& g);

// For f32. Results of tiles are added in the order of the tiles, so an example's result does not depend on other
// examples.
std::unique_ptr<CpuKernel> make_tiled_input_grad(const CpuRequest& request, const ConvGeometry& g);
// Computes the first result only, the kernel's gradient.
std::unique_ptr<CpuKernel> make_tiled_kernel_grad(const CpuRequest& request, const ConvGeometry& g);

}  // namespace pmaptrain::ops

#endif  // PMAPTRAIN_REFERENCE_KERNELS
