// Max pooling of f32 with the widest vector instructions of the CPU; the bits are those of the reference.
#pragma once

#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include "core/ops/max_pool/geometry.h"

namespace pmaptrain::ops {

// As MaxPool and MaxPoolGrad say: x [N,H,W,C], y and dy of the pooled shape, dx of x's.
void max_pool_simd(const PoolGeometry& g, const float* x, float* y);
void max_pool_grad_simd(const PoolGeometry& g, const float* x, const float* dy, float* dx, bool relu);

}  // namespace pmaptrain::ops

#endif  // PMAPTRAIN_REFERENCE_KERNELS
