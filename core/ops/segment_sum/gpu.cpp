#include "core/ops/support/gpu.h"

#include "core/ops/segment_sum/segment_sum.h"

namespace pmaptrain::ops {

// A block of threads for each segment: a thread adds every 256th element, then the threads' sums are added. This is
// another order than the CPU's.
GpuKernel SegmentSum::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  const std::int64_t segments = request.operands[1].shape[0];
  return {{launch_blocks(kernel_name("segment_sum", request.operands[0].dtype), request.devices * segments, gpu_threads,
                         {GpuArgument::result(0), GpuArgument::operand(0), GpuArgument::operand(1),
                          number(request.devices * segments), number(segments), number(numel(request.operands[0])),
                          number(device_stride(request, 0)), number(device_stride(request, 1))})}};
}

}  // namespace pmaptrain::ops
