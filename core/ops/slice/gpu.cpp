#include "core/ops/support/gpu.h"

#include "core/ops/slice/slice.h"
#include "core/ops/support/boxes.h"

namespace pmaptrain::ops {

GpuKernel Slice::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  const Shape& shape = request.results[0].shape;
  const Dims from = row_major(request.operands[0].shape);
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) offset += starts[i] * from[i];
  return {{launch_box(request, shape, {row_major(shape).span()}, {from.span(), offset})}};
}

}  // namespace pmaptrain::ops
