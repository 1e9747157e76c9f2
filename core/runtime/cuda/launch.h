// Prepares launches of this project's own kernels: those that are part of this library, and generated ones.
#pragma once

#include <memory>
#include <string>

#include "core/runtime/cuda/prepared_command.h"

namespace pmaptrain::cuda {

// Whether kernels are loaded on the current device, or only compiled because there is no GPU.
enum class RunsOn : std::uint8_t { device, nowhere };

// Throws Error (failed) if there is no kernel of this name.
std::unique_ptr<PreparedCommand> prepare_launch(const GpuLaunch& launch, RunsOn runs_on);

// Loads the kernel `launch.kernel` from compiled `code`.
std::unique_ptr<PreparedCommand> prepare_generated(const std::string& code, const GpuLaunch& launch, RunsOn runs_on);

}  // namespace pmaptrain::cuda
