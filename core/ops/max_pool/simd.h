// Max pooling with the widest vector instructions of the CPU. Results equal those of the reference.
#pragma once

#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include "core/ops/max_pool/geometry.h"

namespace pmaptrain::ops {

// For the shapes of MaxPool and MaxPoolGrad: x [N,H,W,C], y and dy of the pooled shape, dx like x.
void max_pool_simd(const PoolGeometry& g, const float* x, float* y);
void max_pool_grad_simd(const PoolGeometry& g, const float* x, const float* dy, float* dx, bool relu);

// Whether windows do not overlap. Then the gradient of bf16 values has no sums that would need rounding.
bool windows_are_apart(const PoolGeometry& g);
void max_pool_simd(const PoolGeometry& g, const bf16* x, bf16* y);
void max_pool_grad_simd(const PoolGeometry& g, const bf16* x, const bf16* dy, bf16* dx, bool relu);

}  // namespace pmaptrain::ops

#endif  // PMAPTRAIN_REFERENCE_KERNELS
