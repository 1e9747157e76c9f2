// Launches of the project's own kernels, built in or generated.
#pragma once

#include <memory>
#include <string>

#include "core/runtime/cuda/work.h"

namespace pmaptrain::cuda {

// Where kernels run: on the current device, or nowhere.
enum class RunsOn : std::uint8_t { device, nowhere };

// Throws Error (failed) for a kernel that there is not.
std::unique_ptr<Work> prepare_launch(const GpuLaunch& launch, RunsOn runs_on);

// Takes the kernel `launch.kernel` from `code`, which was compiled.
std::unique_ptr<Work> prepare_generated(const std::string& code, const GpuLaunch& launch, RunsOn runs_on);

}  // namespace pmaptrain::cuda
