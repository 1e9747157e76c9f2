#include "core/ops/support/gpu.h"

#include "core/ops/scatter_add/scatter_add.h"

namespace pmaptrain::ops {

GpuKernel ScatterAdd::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  const Type &indices = request.operands[0], &result = request.results[0];
  const std::int64_t elements = numel(result), count = request.devices * ((elements + gpu_threads - 1) / gpu_threads);
  return {
      {launch_blocks(kernel_name("scatter_add", result.dtype), count, gpu_threads,
                     {GpuArgument::result(0), GpuArgument::operand(0), GpuArgument::operand(1),
                      number(indices.dtype == DType::i64 ? 1 : 0), number(count), number(rows), number(elements / rows),
                      number(numel(indices)), number(device_stride(request, 0)), number(device_stride(request, 1))})}};
}

}  // namespace pmaptrain::ops
