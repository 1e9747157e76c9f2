// The generator of kernel sources that the program passes to the GPU module.
#pragma once

#include "core/runtime/gpu/module_table.h"

namespace pmaptrain::gpu {

// Generates the kernel of an equation for GpuCall::By::generated: adapts core/ops/fused/gpu_source.h to
// ModuleOptions::generate.
Generated generate(const Op& op, const GpuRequest& request);

}  // namespace pmaptrain::gpu
