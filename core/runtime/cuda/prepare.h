// Prepares the commands of kernels: convolutions with cuDNN, matrix products with cuBLASLt, and launches of this
// project's own kernels, those that are part of this library and generated ones. All throw Error (failed), with the
// name of the op or kernel, if there is nothing that carries the command out.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <string>
#include <string_view>

#include "core/runtime/cuda/conv_plan.h"
#include "core/runtime/cuda/handles.h"
#include "core/runtime/cuda/prepared_command.h"

namespace pmaptrain::cuda {

// cuDNN's heuristics choose the engine (its implementation) among those that give the same bits in each run.
std::unique_ptr<PreparedCommand> prepare_conv(const GpuConv& conv, std::string_view op, const GpuRequest& request,
                                              ConvPlanner& planner, Relu relu);

using CublasHandle = Handle<cublasLtHandle_t, cublasLtDestroy>;

// Chooses the algorithm by the library's heuristics, which choose the same one for equal shapes on equal GPUs. If
// `handle` is null, there is no GPU: the product cannot run, and its workspace is matmul_budget.
std::unique_ptr<PreparedCommand> prepare_matmul(const GpuMatmul& product, std::string_view op,
                                                const GpuRequest& request, cublasLtHandle_t handle, Relu relu);

// Whether kernels are loaded on the current device, or only compiled because there is no GPU.
enum class RunsOn : std::uint8_t { device, nowhere };

std::unique_ptr<PreparedCommand> prepare_launch(const GpuLaunch& launch, RunsOn runs_on);

// Loads the kernel `launch.kernel` from compiled `code`.
std::unique_ptr<PreparedCommand> prepare_generated(const std::string& code, const GpuLaunch& launch, RunsOn runs_on);

}  // namespace pmaptrain::cuda
