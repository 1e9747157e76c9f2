// Convolutions by cuDNN.
#pragma once

#include <memory>

#include "core/runtime/cuda/conv_plan.h"
#include "core/runtime/cuda/work.h"

namespace pmaptrain::cuda {

// Prepares the ops conv, conv_input_grad and conv_kernel_grad. The library's heuristics choose the engine, among
// engines that are deterministic. Throws Error (failed) if there is none.
std::unique_ptr<Work> prepare_conv(const Op& op, const GpuRequest& request, ConvPlanner& planner, Relu relu);

}  // namespace pmaptrain::cuda
