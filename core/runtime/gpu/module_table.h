// The interface between the program and the shared library libpmaptrain_cuda.so, which is called the module for CUDA.
// The library does not know any op: it executes the commands of core/kernel/gpu.h. It uses an Op only to name it in
// errors, and to pass it back to the program, which generates code (ModuleOptions::generate_source).
#pragma once

#include <memory>
#include <string>

#include "core/runtime/gpu/device.h"
#include "core/runtime/transport.h"

namespace pmaptrain::gpu {

// The version of the interface. It is increased with each change to this file, device.h or core/kernel/gpu.h.
inline constexpr int module_abi = 16;

// The CUDA C++ source of kernels that compute one equation, and their launches. The source declares the kernels as
// extern "C". The string_view `kernel` of a launch, the name of the first one, refers to static memory.
struct GeneratedSource {
  std::string text;
  std::vector<GpuLaunch> launches;  // of the functions that generated_name() names, in order
};

// The GPUs of one of the processes of a host that find the same `gpus` GPUs: neighbours, and as many in each. If there
// are fewer GPUs than processes, each process has all of them: the launcher may have given it others than the rest, by
// the same numbers.
constexpr GpuRange gpus_of_process(int gpus, const HostPlace& place) {
  const int each = gpus / place.processes;
  return each == 0 ? GpuRange{0, gpus} : GpuRange{place.process * each, each};
}

struct ModuleOptions {
  // Generates the kernel for the command GpuGenerated. If it is null, kernels with this command fail to prepare.
  GeneratedSource (*generate_source)(const Op& op, const GpuRequest& request) = nullptr;
  // If positive, the platform has this number of virtual devices, all on the first GPU. If 0, it has the GPUs of the
  // machine.
  int virtual_devices = 0;
  HostPlace place = {};  // whose part of the machine's GPUs the platform has
};

struct ModuleTable {
  int abi = module_abi;  // checked before anything else is read
  // Throws Error (resource) if there is no GPU or no driver.
  std::unique_ptr<Platform> (*open)(const ModuleOptions& options);
  // The description is the JSON text that cuDNN prints of a GPU's properties. Throws Error (failed).
  DescribedGpu (*describe)(const std::string& description, decltype(ModuleOptions::generate_source) generate_source);
};

// The one function that the module exports.
inline constexpr const char* module_function = "pmaptrain_cuda";
using ModuleFunction = const ModuleTable* (*)();

}  // namespace pmaptrain::gpu
