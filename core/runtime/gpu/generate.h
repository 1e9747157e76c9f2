// The generator of kernel sources that the program passes to the GPU module.
#pragma once

#include "core/runtime/gpu/module_table.h"

namespace pmaptrain::gpu {

// Generates the kernel of an equation whose GpuKernel has the command GpuGenerated. This is ops::gpu_source()
// (core/ops/fused/gpu_source.h) in the form of ModuleOptions::generate_source.
GeneratedSource generate_source(const Op& op, const GpuRequest& request);

}  // namespace pmaptrain::gpu
