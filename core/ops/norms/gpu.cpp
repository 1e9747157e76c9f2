#include "core/ops/support/gpu.h"

#include <algorithm>

#include "core/ops/norms/norms.h"

namespace pmaptrain::ops {
namespace {

constexpr std::int64_t norm_elements = 32 * gpu_threads;  // of a block

}  // namespace

// Squares are added in another order than by the CPU, whose 32 running sums would leave a GPU idle. As they are f64,
// the sums differ in their last bits at most.
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

}  // namespace pmaptrain::ops
