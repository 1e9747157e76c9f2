#include "core/ops/support/gpu.h"

#include "core/ops/gather/gather.h"

namespace pmaptrain::ops {

GpuKernel Gather::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  const Type &table = request.operands[0], &indices = request.operands[1];
  const std::int64_t of_device = numel(indices), width = numel(request.results[0]) / of_device;
  const std::int64_t count = request.devices * of_device * width;
  return {{launch_elements(
      word_name("gather", table.dtype), count,
      {GpuArgument::result(0), GpuArgument::operand(0), GpuArgument::operand(1),
       number(indices.dtype == DType::i64 ? 1 : 0), number(count), number(width), number(of_device),
       number(table.shape[0]), number(device_stride(request, 0)), number(device_stride(request, 1))})}};
}

}  // namespace pmaptrain::ops
