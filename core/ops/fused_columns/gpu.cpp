#include "core/ops/reduce/gpu.h"

#include "core/ops/fused_columns/fused_columns.h"
#include "core/ops/fused_columns/gpu_source.h"
#include "core/ops/support/gpu.h"

namespace pmaptrain::ops {

GpuKernel FusedColumns::gpu(const GpuRequest& request) const {
  const PartsOfSums parts = parts_of_sums(request);
  GpuKernel kernel{{GpuGenerated{}}, parts.bytes};
  for (std::size_t i = 0; i < request.results.size(); ++i) {
    kernel.commands.push_back(combine_columns("sum", request.results[i].dtype, GpuArgument::result(i),
                                              GpuArgument::scratch(parts.offsets[i]), parts.order, request.devices));
  }
  return kernel;
}

}  // namespace pmaptrain::ops
