// Depthwise convolutions, in which each channel makes its own results, by loops of our own where the library has no
// depthwise kernel: its general ones take 2 to 75 times as long (measured; with 3 channels about as long).
#pragma once

#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include <memory>

#include "core/kernel/cpu.h"
#include "core/ops/conv/geometry.h"

namespace pmaptrain::ops {

// Whether a request takes these loops: one whose channels make several results each, and a gradient whose kernel is
// dilated. Of the others the library has kernels as fast as these (measured). Decided by one device's shapes.
bool takes_depthwise(const CpuRequest& request, const ConvGeometry& g, bool gradient);

std::unique_ptr<CpuKernel> make_depthwise(const CpuRequest& request, const ConvGeometry& g, bool relu);
std::unique_ptr<CpuKernel> make_depthwise_input_grad(const CpuRequest& request, const ConvGeometry& g);
// Its first result only.
std::unique_ptr<CpuKernel> make_depthwise_kernel_grad(const CpuRequest& request, const ConvGeometry& g);

}  // namespace pmaptrain::ops

#endif  // PMAPTRAIN_REFERENCE_KERNELS
