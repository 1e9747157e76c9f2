#include "core/ops/support/gpu.h"

#include "core/graph/bucket.h"
#include "core/ops/bucket/bucket.h"

namespace pmaptrain::ops {

// One copy for each array, and zeros for the elements behind it.
GpuKernel Pack::gpu(const GpuRequest& request) const {
  GpuKernel kernel;
  if (has_no_results(request)) return kernel;
  const std::vector<std::int64_t> offsets = offsets_in_bucket(request.operands);
  const DType dtype = request.results[0].dtype;
  const std::int64_t whole = numel(request.results[0]);
  if (request.devices > 1)
    kernel.commands.push_back(launch_zeros(dtype, GpuArgument::result(0), request.devices * whole));
  for (std::size_t i = 0; i < request.operands.size(); ++i) {
    const std::int64_t size = numel(request.operands[i]);
    const std::int64_t next = i + 1 == request.operands.size() ? whole : offsets[i + 1];
    const std::int64_t behind = next - offsets[i] - size;
    const auto at = [&](std::int64_t element) {
      return GpuArgument::result(0, static_cast<std::size_t>(element) * size_of(dtype));
    };
    if (size > 0) {
      kernel.commands.push_back(launch_copy(dtype, at(offsets[i]), GpuArgument::operand(i),
                                            {{request.devices, whole, device_stride(request, i)}, {size, 1, 1}}));
    }
    if (request.devices == 1 && behind > 0) {
      kernel.commands.push_back(launch_zeros(dtype, at(offsets[i] + size), behind));
    }
  }
  return kernel;
}

GpuKernel Unpack::gpu(const GpuRequest& request) const {
  GpuKernel kernel;
  const std::vector<std::int64_t> offsets = offsets_in_bucket(request.results);
  const DType dtype = request.operands[0].dtype;
  for (std::size_t i = 0; i < request.results.size(); ++i) {
    const std::int64_t size = numel(request.results[i]);
    if (size == 0) continue;
    const auto from = GpuArgument::operand(0, static_cast<std::size_t>(offsets[i]) * size_of(dtype));
    kernel.commands.push_back(launch_copy(dtype, GpuArgument::result(i), from,
                                          {{request.devices, size, device_stride(request, 0)}, {size, 1, 1}}));
  }
  return kernel;
}

}  // namespace pmaptrain::ops
