#include "core/ops/support/gpu.h"

#include "core/ops/broadcast/broadcast.h"
#include "core/ops/support/boxes.h"

namespace pmaptrain::ops {

// New dimensions have a stride of 0 in the operand.
GpuKernel Broadcast::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  const Shape& sizes = request.results[0].shape;
  const Dims strides = row_major(request.operands[0].shape);
  Dims from;
  from.rank = sizes.size();
  for (std::size_t i = 0; i < dims.size(); ++i) from[static_cast<std::size_t>(dims[i])] = strides[i];
  return {{launch_box(request, sizes, {row_major(sizes).span()}, {from.span()})}};
}

}  // namespace pmaptrain::ops
