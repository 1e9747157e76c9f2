// Computes on some columns of a wider matrix with kernels for whole matrices: copies the columns first.
#pragma once

#include <functional>
#include <memory>

#include "core/kernel/cpu.h"

namespace pmaptrain {

// Lets `make` create a kernel for the request without request.columns. The returned kernel copies the columns to its
// scratch memory. This costs little beside a product, which uses each element many times.
std::unique_ptr<CpuKernel> make_kernel_of_columns(
    const CpuRequest& request, const std::function<std::unique_ptr<CpuKernel>(const CpuRequest&)>& make);

}  // namespace pmaptrain
