#include "core/ops/max_pool/gpu.h"

#include "core/ops/avg_pool/avg_pool.h"

namespace pmaptrain::ops {

GpuKernel AvgPool::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  const Type& x = request.operands[0];
  const std::int64_t count = request.devices * numel(request.results[0]);
  std::vector<GpuArgument> arguments{GpuArgument::result(0), GpuArgument::operand(0), number(count), images(request, 0),
                                     number(count_include_pad ? 1 : 0)};
  add_pool(arguments, pool_geometry(name, x.shape, window, strides, padding), request.devices * x.shape[0]);
  return {{launch_elements(kernel_name("avg_pool", x.dtype), count, std::move(arguments))}};
}

GpuKernel AvgPoolGrad::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  const Type& dx = request.results[0];
  const std::int64_t count = request.devices * numel(dx);
  std::vector<GpuArgument> arguments{GpuArgument::result(0), GpuArgument::operand(0), number(count), images(request, 0),
                                     number(count_include_pad ? 1 : 0)};
  add_pool(arguments, pool_geometry(name, dx.shape, window, strides, padding), request.devices * dx.shape[0]);
  return {{launch_elements(kernel_name("avg_pool_grad", dx.dtype), count, std::move(arguments))}};
}

}  // namespace pmaptrain::ops
