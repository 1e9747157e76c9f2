#include "core/ops/support/gpu.h"

#include "core/ops/reverse/reverse.h"
#include "core/ops/support/boxes.h"

namespace pmaptrain::ops {

GpuKernel Reverse::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  const Shape& shape = request.results[0].shape;
  const Dims to = row_major(shape);
  Dims from = to;
  std::int64_t first = 0;
  for (const std::int64_t dim : dims) {
    const auto d = static_cast<std::size_t>(dim);
    first += (shape[d] - 1) * to[d];
    from[d] = -to[d];
  }
  return {{launch_box(request, shape, {to.span()}, {from.span(), first})}};
}

}  // namespace pmaptrain::ops
