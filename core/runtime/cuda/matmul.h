// Matrix products with cuBLASLt.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <string_view>

#include "core/runtime/cuda/handles.h"
#include "core/runtime/cuda/work.h"

namespace pmaptrain::cuda {

using CublasHandle = Handle<cublasLtHandle_t, cublasLtDestroy>;

// The algorithm is chosen here, once, by the library's rules: the same for equal shapes on equal GPUs. `handle` may be
// null; then the product is planned but cannot run, and its workspace is the most that any takes. Throws Error
// (failed), with the op's name, where the library has no algorithm.
std::unique_ptr<Work> prepare_matmul(const GpuMatmul& product, std::string_view op, const GpuRequest& request,
                                     cublasLtHandle_t handle, Relu relu);

}  // namespace pmaptrain::cuda
