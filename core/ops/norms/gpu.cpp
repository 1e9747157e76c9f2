#include "core/ops/support/gpu.h"

#include "core/ops/norms/norms.h"

namespace pmaptrain::ops {

// A warp for each row. In rows of 64 elements the order of additions is the CPU's; in longer rows it is another one.
GpuKernel Norms::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  const std::int64_t rows = numel(request.results[0]), row = request.operands[0].shape.back();
  return {
      {launch_blocks(kernel_name("norms", request.operands[0].dtype),
                     divided_up(request.devices * rows, gpu_threads / 32), gpu_threads,
                     {GpuArgument::result(0), GpuArgument::result(1), GpuArgument::operand(0),
                      number(request.devices * rows), number(rows), number(row), number(device_stride(request, 0))})}};
}

}  // namespace pmaptrain::ops
