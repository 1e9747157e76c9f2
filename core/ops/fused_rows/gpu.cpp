#include "core/ops/support/gpu.h"

#include "core/ops/fused_rows/fused_rows.h"

namespace pmaptrain::ops {

GpuKernel FusedRows::gpu(const GpuRequest& request) const { return generated_kernel(request); }

}  // namespace pmaptrain::ops
