#include "core/ops/support/gpu.h"

#include "core/ops/scatter/scatter.h"

namespace pmaptrain::ops {

// The first launch copies the operand, unless the result is in its memory. The second writes the rows.
GpuKernel Scatter::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  const Type &table = request.results[0], &indices = request.operands[1];
  const std::int64_t of_device = numel(indices), elements = numel(table), width = elements / table.shape[0];
  GpuKernel kernel{
      {launch_elements(word_name("scatter_base", table.dtype), request.devices * elements,
                       {GpuArgument::result(0), GpuArgument::operand(0), number(request.devices * elements),
                        number(elements), number(device_stride(request, 0))})}};
  const std::int64_t count = request.devices * of_device * width;
  if (count == 0) return kernel;
  kernel.commands.push_back(
      launch_elements(word_name("scatter", table.dtype), count,
                      {GpuArgument::result(0), GpuArgument::operand(1), GpuArgument::operand(2),
                       number(indices.dtype == DType::i64 ? 1 : 0), number(count), number(width), number(of_device),
                       number(table.shape[0]), number(device_stride(request, 1)), number(device_stride(request, 2))}));
  return kernel;
}

}  // namespace pmaptrain::ops
