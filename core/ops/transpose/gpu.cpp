#include "core/ops/support/gpu.h"

#include "core/ops/support/boxes.h"
#include "core/ops/transpose/transpose.h"

namespace pmaptrain::ops {

GpuKernel Transpose::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  const Shape& shape = request.results[0].shape;
  const Dims strides = row_major(request.operands[0].shape);
  Dims from;
  for (const std::int64_t dim : permutation) from.push(strides[static_cast<std::size_t>(dim)]);
  return {{launch_box(request, shape, {row_major(shape).span()}, {from.span()})}};
}

}  // namespace pmaptrain::ops
