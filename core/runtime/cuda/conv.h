// Convolutions with cuDNN.
#pragma once

#include <memory>
#include <string_view>

#include "core/runtime/cuda/conv_plan.h"
#include "core/runtime/cuda/prepared_command.h"

namespace pmaptrain::cuda {

// cuDNN's heuristics choose the engine (its implementation) among those that give the same bits in each run. Throws
// Error (failed), with the name of the op, if cuDNN has no such engine.
std::unique_ptr<PreparedCommand> prepare_conv(const GpuConv& conv, std::string_view op, const GpuRequest& request,
                                              ConvPlanner& planner, Relu relu);

}  // namespace pmaptrain::cuda
