#include "core/ops/support/gpu.h"

#include <algorithm>

#include "core/ops/norms/norms.h"
#include "core/ops/norms/parts.h"

namespace pmaptrain::ops {

// The CPU adds squares in 32 partial sums, which would leave a GPU idle. The order here differs, so sums may differ
// from the CPU's, but only in the last bits of f64.
GpuKernel Norms::gpu(const GpuRequest& request) const {
  const Type& x = request.operands[0];
  const std::int64_t elements = numel(x), chunks = (elements + norm_elements - 1) / norm_elements;
  if (elements == 0) return zeros_kernel(request);
  const std::int64_t parts = request.devices * chunks;
  const auto squares = GpuArgument::scratch(), largest = GpuArgument::scratch(static_cast<std::size_t>(parts) * 8);
  GpuKernel kernel;
  kernel.scratch_bytes = static_cast<std::size_t>(parts) * 2 * 8;
  kernel.commands.push_back(
      launch_blocks(kernel_name("norm_parts", x.dtype), parts, gpu_threads,
                    {squares, largest, GpuArgument::operand(0), number(parts), number(chunks), number(norm_elements),
                     number(elements), number(device_stride(request, 0))}));
  kernel.commands.push_back(launch_blocks(
      kernel_name("norms", x.dtype), request.devices, gpu_threads,
      {GpuArgument::result(0), GpuArgument::result(1), squares, largest, number(request.devices), number(chunks)}));
  return kernel;
}

GpuKernel NormsOfParts::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  const std::int64_t elements = numel(request.operands[0]), chunks = request.operands[1].shape[0],
                     parts = request.operands[2].shape[0];
  const std::int64_t count = request.devices * chunks;
  const auto squares = GpuArgument::scratch(), largest = GpuArgument::scratch(static_cast<std::size_t>(count) * 8);
  const DType dtype = request.operands[0].dtype;
  GpuKernel kernel;
  kernel.scratch_bytes = static_cast<std::size_t>(count) * 2 * 8;
  if (count > 0) {
    kernel.commands.push_back(launch_blocks(
        kernel_name("norm_chunks", dtype), count, gpu_threads,
        {squares, largest, GpuArgument::operand(0), GpuArgument::operand(1), number(count), number(chunks),
         number(elements), number(device_stride(request, 0)), number(device_stride(request, 1))}));
  }
  kernel.commands.push_back(launch_blocks(
      kernel_name("norms_of_parts", dtype), request.devices * parts, gpu_threads,
      {GpuArgument::result(0), GpuArgument::result(1), squares, largest, GpuArgument::operand(2),
       number(request.devices * parts), number(parts), number(chunks), number(device_stride(request, 2))}));
  return kernel;
}

}  // namespace pmaptrain::ops
