#include "core/ops/support/gpu.h"

#include "core/ops/one_hot/one_hot.h"

namespace pmaptrain::ops {

GpuKernel OneHot::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  const Type& indices = request.operands[0];
  const std::int64_t count = request.devices * numel(request.results[0]);
  return {
      {launch_elements(kernel_name("one_hot", dtype), count,
                       {GpuArgument::result(0), GpuArgument::operand(0), number(indices.dtype == DType::i64 ? 1 : 0),
                        number(count), number(depth), number(numel(indices)), number(device_stride(request, 0))})}};
}

}  // namespace pmaptrain::ops
