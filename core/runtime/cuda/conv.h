// Convolutions by cuDNN.
#pragma once

#include <memory>
#include <string_view>

#include "core/runtime/cuda/conv_plan.h"
#include "core/runtime/cuda/work.h"

namespace pmaptrain::cuda {

// The library chooses the engine by its rules, among those that give the same bits in each run. Throws Error (failed),
// with the op's name, where it has none.
std::unique_ptr<Work> prepare_conv(const GpuConv& conv, std::string_view op, const GpuRequest& request,
                                   ConvPlanner& planner, Relu relu);

}  // namespace pmaptrain::cuda
