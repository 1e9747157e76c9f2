#include "core/ops/support/gpu.h"

#include "core/ops/first_occurrence/first_occurrence.h"

namespace pmaptrain::ops {

GpuKernel FirstOccurrence::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  const Type& indices = request.operands[0];
  const std::int64_t of_device = numel(indices), count = request.devices * of_device;
  return {{launch_elements(kernel_name("first_occurrence", indices.dtype), count,
                           {GpuArgument::result(0), GpuArgument::result(1), GpuArgument::operand(0), number(count),
                            number(of_device), number(rows), number(device_stride(request, 0))})}};
}

}  // namespace pmaptrain::ops
