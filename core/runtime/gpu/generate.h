// Generates the sources of kernels for libpmaptrain_cuda.so, which knows no op. The executable passes generate_source()
// to the library in ModuleOptions.
#pragma once

#include "core/runtime/gpu/module_table.h"

namespace pmaptrain::gpu {

// Generates the kernel of an equation whose GpuKernel has the command GpuGenerated. This is ops::gpu_source()
// (core/ops/fused/gpu_source.h) in the form of ModuleOptions::generate_source.
GeneratedSource generate_source(const Op& op, const GpuRequest& request);

}  // namespace pmaptrain::gpu
