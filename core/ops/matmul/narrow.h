// Products of narrow matrices with a vector: a dense layer with one output on a few features, and its gradient.
#pragma once

#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include <memory>

#include "core/ops/matmul/matmul.h"

namespace pmaptrain::ops {

// Returns null if `request` is not such a product.
std::unique_ptr<CpuKernel> make_narrow_kernel(const Matmul& op, const CpuRequest& request);

}  // namespace pmaptrain::ops

#endif  // PMAPTRAIN_REFERENCE_KERNELS
