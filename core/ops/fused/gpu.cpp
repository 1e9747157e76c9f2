#include "core/ops/support/gpu.h"

#include "core/ops/fused/fused.h"

namespace pmaptrain::ops {

GpuKernel Fused::gpu(const GpuRequest& request) const { return generated_kernel(request); }

}  // namespace pmaptrain::ops
