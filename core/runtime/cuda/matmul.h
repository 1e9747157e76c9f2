// Matrix products with cuBLASLt.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <string_view>

#include "core/runtime/cuda/handles.h"
#include "core/runtime/cuda/prepared_command.h"

namespace pmaptrain::cuda {

using CublasHandle = Handle<cublasLtHandle_t, cublasLtDestroy>;

// Chooses the algorithm by the library's heuristics, which choose the same one for equal shapes on equal GPUs. If
// `handle` is null, there is no GPU: the product cannot run, and its workspace is matmul_budget. Throws Error (failed),
// with the name of the op, if the library has no algorithm.
std::unique_ptr<PreparedCommand> prepare_matmul(const GpuMatmul& product, std::string_view op,
                                                const GpuRequest& request, cublasLtHandle_t handle, Relu relu);

}  // namespace pmaptrain::cuda
