// Prepares launches of the project's own kernels, built-in or generated.
#pragma once

#include <memory>
#include <string>

#include "core/runtime/cuda/work.h"

namespace pmaptrain::cuda {

// Whether kernels are loaded on the current device, or only compiled.
enum class RunsOn : std::uint8_t { device, nowhere };

// Throws Error (failed) if there is no kernel of this name.
std::unique_ptr<Work> prepare_launch(const GpuLaunch& launch, RunsOn runs_on);

// Loads the kernel `launch.kernel` from compiled `code`.
std::unique_ptr<Work> prepare_generated(const std::string& code, const GpuLaunch& launch, RunsOn runs_on);

}  // namespace pmaptrain::cuda
