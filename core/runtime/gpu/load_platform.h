// Opens libpmaptrain_cuda.so, which contains all use of CUDA. The program itself starts without CUDA's libraries.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "core/runtime/gpu/module_table.h"

namespace pmaptrain::gpu {

// The places where the module is searched: PMAPTRAIN_CUDA_MODULE if it is set; else the program's folder, the folder
// above (for tests of a build), and ../lib/pmaptrain (for installed packages).
std::vector<std::filesystem::path> module_places();

// Throws Error (resource) if the module or a library that it needs is missing, if it belongs to another version of the
// program, or if there is no GPU.
std::unique_ptr<Platform> load_platform(const ModuleOptions& options = {});

}  // namespace pmaptrain::gpu
