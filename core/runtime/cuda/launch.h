// Launches of the project's own kernels, built in or generated.
#pragma once

#include <memory>

#include "core/runtime/cuda/code_cache.h"
#include "core/runtime/cuda/work.h"

namespace pmaptrain::cuda {

// Where kernels run: on the current device, or nowhere.
enum class Place : std::uint8_t { device, nowhere };

// Throws Error (failed) for a kernel that there is not.
std::unique_ptr<Work> prepare_launch(const GpuLaunch& launch, Place place);

// Compiles `text` and takes the kernel `launch.kernel` from it.
std::unique_ptr<Work> prepare_generated(const std::string& text, const GpuLaunch& launch, int compute_capability,
                                        const CodeCache& cache, Place place);

}  // namespace pmaptrain::cuda
