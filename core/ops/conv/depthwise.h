// Depthwise convolutions, in which each channel has results of its own, by loops of ours where the library has no
// depthwise kernel: its general kernels take 2 to 75 times as long (measured; with 3 channels about as long).
#pragma once

#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include <memory>

#include "core/kernel/cpu.h"
#include "core/ops/conv/geometry.h"

namespace pmaptrain::ops {

// Whether f32 takes these loops: several results for each channel, and a gradient with a dilated kernel. For the others
// the library's kernels are as fast (measured). Decided by one device's shapes.
bool takes_depthwise(const ConvGeometry& g, bool gradient);

std::unique_ptr<CpuKernel> make_depthwise(const CpuRequest& request, const ConvGeometry& g, bool relu);
std::unique_ptr<CpuKernel> make_depthwise_input_grad(const CpuRequest& request, const ConvGeometry& g);
// Its first result only.
std::unique_ptr<CpuKernel> make_depthwise_kernel_grad(const CpuRequest& request, const ConvGeometry& g);

}  // namespace pmaptrain::ops

#endif  // PMAPTRAIN_REFERENCE_KERNELS
