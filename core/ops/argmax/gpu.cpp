#include "core/ops/support/gpu.h"

#include "core/ops/argmax/argmax.h"

namespace pmaptrain::ops {

GpuKernel Argmax::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  const Type& x = request.operands[0];
  const std::int64_t size = x.shape[static_cast<std::size_t>(dim)];
  const std::int64_t inner = numel(Shape(x.shape.begin() + dim + 1, x.shape.end()));
  const std::int64_t of_device = numel(request.results[0]), count = request.devices * of_device;
  return {{launch_elements(kernel_name("argmax", x.dtype), count,
                           {GpuArgument::result(0), GpuArgument::operand(0), number(count), number(of_device),
                            number(size), number(inner), number(device_stride(request, 0))})}};
}

}  // namespace pmaptrain::ops
