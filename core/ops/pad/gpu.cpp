#include "core/ops/support/gpu.h"

#include "core/ops/pad/pad.h"
#include "core/ops/support/boxes.h"

namespace pmaptrain::ops {

// Fills the result with zeros, then copies the operand into it.
GpuKernel Pad::gpu(const GpuRequest& request) const {
  GpuKernel kernel = zeros_kernel(request);
  const Shape& shape = request.operands[0].shape;
  if (numel(shape) == 0) return kernel;
  const Dims to = row_major(request.results[0].shape);
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < low.size(); ++i) offset += low[i] * to[i];
  kernel.commands.push_back(launch_box(request, shape, {to.span(), offset}, {row_major(shape).span()}));
  return kernel;
}

}  // namespace pmaptrain::ops
