// The project's own kernels by their names.
#pragma once

#include <string_view>

namespace pmaptrain::cuda {

// What cudaLaunchKernel takes; null for a name that there is not.
const void* kernel_named(std::string_view name);

}  // namespace pmaptrain::cuda
