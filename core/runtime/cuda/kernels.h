// The project's own kernels, by name.
#pragma once

#include <string_view>

namespace pmaptrain::cuda {

// Returns the kernel as an argument of cudaLaunchKernel, or null if there is no kernel with this name.
const void* kernel_named(std::string_view name);

}  // namespace pmaptrain::cuda
