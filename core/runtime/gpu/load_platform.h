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

// Likewise: a GPU with this description, which is the JSON text that cuDNN prints of a GPU's properties.
DescribedGpu describe_gpu(const std::string& description,
                          decltype(ModuleOptions::generate_source) generate_source = nullptr);

// Generates the sources of kernels for the library, which knows no op: ops::gpu_source() (core/ops/fused/gpu_source.h)
// in the form of ModuleOptions::generate_source.
GeneratedSource generate_source(const Op& op, const GpuRequest& request);

// The description of an NVIDIA H100. Plans are made for this GPU if the machine has none.
inline constexpr const char* h100 = R"({
"deviceName": "NVIDIA H100 80GB HBM3", "cudaDeviceId": 0, "deviceVer": 900, "driverVer": 13000,
"multiProcessorCount": 132, "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
"regsPerBlock": 65536, "smClockRateKHz": 1980000, "memClockRateKHz": 2619000, "l2CacheSize": 52428800,
"warpSize": 32, "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
"reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "pciDeviceId": 0, "maxCtasPerSM": 32,
"maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "isTccDriver": 0, "supportCoopLaunch": 1,
"totalGlobalMem": 85029158912
})";

}  // namespace pmaptrain::gpu
