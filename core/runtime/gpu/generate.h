// The generator of kernel sources that the program passes to the GPU module.
#pragma once

#include "core/runtime/gpu/module_table.h"

namespace pmaptrain::gpu {

// For equations that GpuGenerated stands for: core/ops/fused/gpu_source.h as ModuleOptions::generate takes
// it.
Generated generate(const Op& op, const GpuRequest& request);

}  // namespace pmaptrain::gpu
