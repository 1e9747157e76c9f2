#include "core/ops/fused_columns/fused_columns.h"
#include "core/ops/fused_columns/gpu_source.h"

namespace pmaptrain::ops {

GpuKernel FusedColumns::gpu(const GpuRequest& request) const {
  return {{GpuGenerated{}}, parts_of_sums(request).bytes};
}

}  // namespace pmaptrain::ops
