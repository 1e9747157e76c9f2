// What the program and the module libpmaptrain_cuda.so agree on. The module has a copy of the program's errors and
// texts, but knows no op: it takes the commands of core/kernel/gpu.h, names the op in errors, and gives it back to the
// program where code is generated.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "core/runtime/gpu/device.h"

namespace pmaptrain::gpu {

// Raised with each change to this file, device.h or core/kernel/gpu.h.
inline constexpr int module_abi = 6;

// The CUDA C++ source of a kernel that carries out one equation, and its launch. The source declares the kernel as
// extern "C" with the name `launch.kernel`. The name refers to memory that is never freed, or to a part of `text`.
struct Generated {
  std::string text;
  GpuLaunch launch;
};

struct ModuleOptions {
  // Writes the text of what is carried out by GpuGenerated. Null: such equations are refused.
  Generated (*generate)(const Op& op, const GpuRequest& request) = nullptr;
  // If positive, the number of virtual devices, all on the first GPU. 0: use the GPUs of the machine.
  int virtual_devices = 0;
  // If not empty: the properties of a GPU, as cuDNN's JSON. No GPU is needed in that case: devices only carry out
  // prepare(), which plans and compiles for the described GPU, and refuse to run anything.
  std::string planned_for = {};
};

// The settings that the module passes to CUDA and NCCL, for tests: they do not affect results.
struct Settings {
  // Whether a communicator's calls block: they are made on the calling thread and done when they return.
  bool communicators_block = false;
  std::array<int, streams> priorities{};  // priorities of the streams, from 0 (lowest) to -5 (highest)
};

struct ModuleTable {
  int abi = module_abi;  // checked before anything else is read
  // Throws Error (resource) if there is no GPU or no driver.
  std::unique_ptr<Platform> (*open)(const ModuleOptions& options);
  Settings (*settings)();
};

// The one function that the module exports.
inline constexpr const char* module_function = "pmaptrain_cuda";
using ModuleFunction = const ModuleTable* (*)();

}  // namespace pmaptrain::gpu
