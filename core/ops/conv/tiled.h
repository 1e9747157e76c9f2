// Gradients of convolutions with large kernels, which the library has no fast primitive for: the kernel is cut into
// tiles of a size that it has, each a convolution of its own over the part of the image that its taps reach.
#pragma once

#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include <memory>

#include "core/kernel/cpu.h"
#include "core/ops/conv/geometry.h"

namespace pmaptrain::ops {

// Whether the kernel of `g` is larger than a tile.
bool takes_tiles(const ConvGeometry& g);

// Of f32. What a tile gives is added up in the order of the tiles, so the bits of an example do not depend on others.
std::unique_ptr<CpuKernel> make_tiled_input_grad(const CpuRequest& request, const ConvGeometry& g);
// The kernel's gradient alone, the first result.
std::unique_ptr<CpuKernel> make_tiled_kernel_grad(const CpuRequest& request, const ConvGeometry& g);

}  // namespace pmaptrain::ops

#endif  // PMAPTRAIN_REFERENCE_KERNELS
