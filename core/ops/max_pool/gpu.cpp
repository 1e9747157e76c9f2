#include "core/ops/max_pool/gpu.h"

#include <algorithm>

#include "core/base/saturate.h"
#include "core/ops/max_pool/max_pool.h"

namespace pmaptrain::ops {

void add_pool(std::vector<GpuArgument>& arguments, const PoolGeometry& geometry, std::int64_t images) {
  arguments.push_back(number(geometry.c));
  for (const Window* w : {&geometry.h, &geometry.w}) {
    for (const std::int64_t value : {w->in, w->out, w->window, w->stride, w->low}) arguments.push_back(number(value));
  }
  // The bound leaves room for sums of a few indices, and for an index that is one grid beyond the end.
  constexpr std::size_t most = std::size_t{1} << 28;
  bool is_narrow = true;
  std::size_t pixels = 1;
  for (const Window* w : {&geometry.h, &geometry.w}) {
    for (const std::int64_t value : {w->in, w->out, w->window, w->stride, w->low}) {
      is_narrow = is_narrow && static_cast<std::size_t>(value) < most;
    }
    pixels = product_of(pixels, static_cast<std::size_t>(std::max(w->in, w->out)));
  }
  const std::size_t all =
      product_of(product_of(static_cast<std::size_t>(images), static_cast<std::size_t>(geometry.c)), pixels);
  arguments.push_back(number(is_narrow && all < most ? 1 : 0));
}

GpuArgument images(const GpuRequest& request, std::size_t operand) {
  return number(request.operands[operand].shape[0] * (request.stacked[operand] ? request.devices : 1));
}

GpuKernel MaxPool::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  const Type& x = request.operands[0];
  const std::int64_t count = request.devices * numel(request.results[0]);
  std::vector<GpuArgument> arguments{GpuArgument::result(0), GpuArgument::operand(0), number(count),
                                     images(request, 0)};
  add_pool(arguments, pool_geometry(name, x.shape, window, strides, padding), request.devices * x.shape[0]);
  return {{launch_elements(kernel_name("max_pool", x.dtype), count, std::move(arguments))}};
}

GpuKernel MaxPoolGrad::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  const Type& x = request.operands[0];
  const std::int64_t count = request.devices * numel(request.results[0]);
  std::vector<GpuArgument> arguments{GpuArgument::result(0), GpuArgument::operand(0), GpuArgument::operand(1),
                                     number(count),          images(request, 0),      images(request, 1),
                                     number(relu ? 1 : 0)};
  add_pool(arguments, pool_geometry(name, x.shape, window, strides, padding), request.devices * x.shape[0]);
  return {{launch_elements(kernel_name("max_pool_grad", x.dtype), count, std::move(arguments))}};
}

}  // namespace pmaptrain::ops
