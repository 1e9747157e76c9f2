#include "core/ops/support/gpu.h"

#include "core/ops/top_k/top_k.h"

namespace pmaptrain::ops {

GpuKernel TopK::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  const Type& x = request.operands[0];
  const std::int64_t n = x.shape.back(), of_device = numel(x) / n, count = request.devices * of_device;
  return {{launch_blocks(kernel_name("top_k", x.dtype), count, gpu_threads,
                         {GpuArgument::result(0), GpuArgument::result(1), GpuArgument::operand(0), number(count),
                          number(of_device), number(n), number(k), number(device_stride(request, 0))})}};
}

}  // namespace pmaptrain::ops
