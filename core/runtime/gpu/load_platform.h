// Opens libpmaptrain_cuda.so, which has all of CUDA: the program itself needs none of its libraries to start.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "core/runtime/gpu/module_table.h"

namespace pmaptrain::gpu {

// Where the module is looked for: PMAPTRAIN_CUDA_MODULE where it is set; else beside the program, above it (as the
// tests of a build are), and in ../lib/pmaptrain (as packages install it).
std::vector<std::filesystem::path> module_places();

// Throws Error (resource) where there is no module, a library that it needs is missing, it belongs to another version
// of the program, or there is no GPU.
std::unique_ptr<Platform> load_platform(const ModuleOptions& options = {});

}  // namespace pmaptrain::gpu
