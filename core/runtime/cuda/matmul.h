// Matrix products with cuBLASLt.
#pragma once

#include <cublasLt.h>

#include <memory>

#include "core/runtime/cuda/handles.h"
#include "core/runtime/cuda/work.h"

namespace pmaptrain::cuda {

using CublasHandle = Handle<cublasLtHandle_t, cublasLtDestroy>;

// Prepares the ops matmul and batch_matmul for floating-point elements. The library's heuristics choose the algorithm
// here, once: the same for equal shapes on equal GPUs. If `handle` is null, the product is only planned and cannot run;
// its workspace is an upper bound. Throws Error (failed) if the library has no algorithm.
std::unique_ptr<Work> prepare_matmul(const Op& op, const GpuRequest& request, cublasLtHandle_t handle, Relu relu);

}  // namespace pmaptrain::cuda
