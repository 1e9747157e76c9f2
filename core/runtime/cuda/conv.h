// Convolutions by cuDNN.
#pragma once

#include <memory>

#include "core/runtime/cuda/conv_plan.h"
#include "core/runtime/cuda/work.h"

namespace pmaptrain::cuda {

// The ops conv, conv_input_grad and conv_kernel_grad. The library chooses the engine by its rules, among those that
// give the same bits in each run. Throws Error (failed) where it has none.
std::unique_ptr<Work> prepare_conv(const Op& op, const GpuRequest& request, ConvPlanner& planner, Relu relu);

}  // namespace pmaptrain::cuda
