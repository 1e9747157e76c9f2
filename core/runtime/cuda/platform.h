// The GPUs of the machine, several devices on one of them, or a GPU that is only described.
#pragma once

#include <memory>

#include "core/runtime/gpu/module_table.h"

namespace pmaptrain::cuda {

// Throws Error (resource) where there is no GPU or no driver.
std::unique_ptr<gpu::Platform> open_platform(const gpu::ModuleOptions& options);

gpu::Settings settings();

// For the GPU with the properties `options.planned_for`: devices that only prepare.
std::unique_ptr<gpu::Platform> open_compile_only_platform(const gpu::ModuleOptions& options);

}  // namespace pmaptrain::cuda
