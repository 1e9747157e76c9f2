// Opens libpmaptrain_cuda.so, which contains all use of CUDA. The program itself starts without CUDA's libraries.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "core/runtime/gpu/module_table.h"

namespace pmaptrain::gpu {

// The paths at which the module is searched. If PMAPTRAIN_CUDA_MODULE is set, it is the only one. Otherwise the module
// is searched in the program's folder, in the folder above (for tests of a build), and in ../lib/pmaptrain (for
// packages).
std::vector<std::filesystem::path> module_search_paths();

// Throws Error (resource) if the module or a library that it needs is missing, if it belongs to another version of the
// program, or if there is no GPU.
std::unique_ptr<Platform> load_platform(const ModuleOptions& options = {});

}  // namespace pmaptrain::gpu
