// The project's own kernels, by name.
#pragma once

#include <string_view>

namespace pmaptrain::cuda {

// A kernel in the form that cudaLaunchKernel takes; null if there is no kernel of this name.
const void* kernel_named(std::string_view name);

}  // namespace pmaptrain::cuda
