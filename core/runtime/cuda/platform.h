// Platforms: the GPUs of the machine, several virtual devices on one GPU, or a GPU that is only described.
#pragma once

#include <memory>

#include "core/runtime/gpu/module_table.h"

namespace pmaptrain::cuda {

// Throws Error (resource) if there is no GPU or no driver.
std::unique_ptr<gpu::Platform> open_platform(const gpu::ModuleOptions& options);

gpu::LibrarySettings settings();

// Opens a platform with the properties `options.planned_for`, whose devices only prepare kernels.
std::unique_ptr<gpu::Platform> open_compile_only_platform(const gpu::ModuleOptions& options);

}  // namespace pmaptrain::cuda
