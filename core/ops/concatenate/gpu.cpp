#include "core/ops/support/gpu.h"

#include "core/ops/concatenate/concatenate.h"

namespace pmaptrain::ops {

// One copy for each operand: its contiguous runs go to its part of each run of the result.
GpuKernel Concatenate::gpu(const GpuRequest& request) const {
  GpuKernel kernel;
  if (has_no_results(request)) return kernel;
  const Type& result = request.results[0];
  const std::int64_t outer = numel(Shape(result.shape.begin(), result.shape.begin() + dim));
  const std::int64_t result_run = numel(result) / outer;
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < request.operands.size(); ++i) {
    const std::int64_t run = numel(request.operands[i]) / outer;
    if (run == 0) continue;
    const auto at = GpuArgument::result(0, static_cast<std::size_t>(offset) * size_of(result.dtype));
    kernel.commands.push_back(launch_copy(
        result.dtype, at, GpuArgument::operand(i),
        {{request.devices, numel(result), device_stride(request, i)}, {outer, result_run, run}, {run, 1, 1}}));
    offset += run;
  }
  return kernel;
}

}  // namespace pmaptrain::ops
