// The gradient of a convolution's kernel as a product of matrices for each of its taps. With AMX the library's
// primitive for bf16 takes half as long again, or twice as long, where images are small and have many channels
// (measured).
#pragma once

#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include <memory>

#include "core/kernel/cpu.h"
#include "core/ops/conv/geometry.h"

namespace pmaptrain::ops {

// Whether the products are faster with AMX. It depends on the shapes of one device alone.
bool takes_taps(const ConvGeometry& g);

// For bf16, without groups. Computes the first result only, the kernel's gradient.
std::unique_ptr<CpuKernel> make_kernel_grad_of_taps(const CpuRequest& request, const ConvGeometry& g);

}  // namespace pmaptrain::ops

#endif  // PMAPTRAIN_REFERENCE_KERNELS
