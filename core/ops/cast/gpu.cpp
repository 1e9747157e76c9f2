#include "core/ops/support/gpu.h"

#include "core/ops/cast/cast.h"

namespace pmaptrain::ops {

GpuKernel Cast::gpu(const GpuRequest& request) const { return generated_kernel(request); }

}  // namespace pmaptrain::ops
