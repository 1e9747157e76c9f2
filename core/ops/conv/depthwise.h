// Depthwise convolutions, in which each channel has its own results, by loops of ours where the library has no
// depthwise kernel. Its general kernels take 2 to 75 times as long (measured; with 3 channels about as long).
#pragma once

#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include <memory>

#include "core/kernel/cpu.h"
#include "core/ops/conv/geometry.h"

namespace pmaptrain::ops {

// Whether these loops are faster than the library for f32: with several results for each channel, and for a gradient
// with a dilated kernel (measured). The decision depends on the shapes of one device.
bool takes_depthwise(const ConvGeometry& g, bool gradient);

std::unique_ptr<CpuKernel> make_depthwise(const CpuRequest& request, const ConvGeometry& g, bool relu);
std::unique_ptr<CpuKernel> make_depthwise_input_grad(const CpuRequest& request, const ConvGeometry& g);
// Computes the first result only.
std::unique_ptr<CpuKernel> make_depthwise_kernel_grad(const CpuRequest& request, const ConvGeometry& g);

}  // namespace pmaptrain::ops

#endif  // PMAPTRAIN_REFERENCE_KERNELS
