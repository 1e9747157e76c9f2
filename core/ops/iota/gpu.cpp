#include "core/ops/support/gpu.h"

#include "core/ops/iota/iota.h"

namespace pmaptrain::ops {

GpuKernel Iota::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  const Shape& sizes = request.results[0].shape;
  const auto d = static_cast<std::size_t>(dim);
  const std::int64_t count = request.devices * numel(sizes);
  const std::int64_t inner = numel(Shape(sizes.begin() + dim + 1, sizes.end()));
  return {{launch_elements(kernel_name("iota", dtype), count,
                           {GpuArgument::result(0), number(count), number(sizes[d]), number(inner)})}};
}

}  // namespace pmaptrain::ops
