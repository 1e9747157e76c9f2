// Matrix products by cuBLASLt.
#pragma once

#include <cublasLt.h>

#include <memory>

#include "core/runtime/cuda/handles.h"
#include "core/runtime/cuda/work.h"

namespace pmaptrain::cuda {

using CublasHandle = Handle<cublasLtHandle_t, cublasLtDestroy>;

// The ops matmul and batch_matmul, of floating elements. The algorithm is chosen here, once, by the library's rules:
// the same for equal shapes on equal GPUs. `handle` may be null; then the product is planned but cannot run, and its
// workspace is the most that any takes. Throws Error (failed) where the library has no algorithm.
std::unique_ptr<Work> prepare_matmul(const Op& op, const GpuRequest& request, cublasLtHandle_t handle, Relu relu);

}  // namespace pmaptrain::cuda
