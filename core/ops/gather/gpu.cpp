#include "core/ops/support/gpu.h"

#include "core/ops/gather/gather.h"

namespace pmaptrain::ops {

// Rows are copied in the widest words whose size divides the size of a row; slices begin at multiples of rows.
GpuKernel Gather::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  const Type &table = request.operands[0], &indices = request.operands[1];
  const std::int64_t of_device = numel(indices), element = static_cast<std::int64_t>(size_of(table.dtype));
  const std::int64_t row_bytes = numel(request.results[0]) / of_device * element;
  std::int64_t word = 8;
  while (row_bytes % word != 0) word /= 2;
  const std::string_view words = word == 8 ? "b8" : word == 4 ? "b4" : word == 2 ? "b2" : "b1";
  const std::int64_t width = row_bytes / word, count = request.devices * of_device * width;
  return {{launch_elements(kernel_name("gather", words), count,
                           {GpuArgument::result(0), GpuArgument::operand(0), GpuArgument::operand(1),
                            number(indices.dtype == DType::i64 ? 1 : 0), number(count), number(width),
                            number(of_device), number(table.shape[0]),
                            number(device_stride(request, 0) * element / word), number(device_stride(request, 1))})}};
}

}  // namespace pmaptrain::ops
