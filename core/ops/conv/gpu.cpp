#include "core/ops/conv/conv.h"
#include "core/ops/matmul/product.h"

namespace pmaptrain::ops {

// Without input channels, each pixel equals the bias.
GpuKernel Conv::gpu(const GpuRequest& request) const {
  if (numel(request.operands[0]) > 0 && numel(request.operands[1]) > 0) return library_kernel(request);
  const Shape& y = request.results[0].shape;
  return GpuProduct{.m = y[0] * y[1] * y[2], .n = y[3], .relu = relu}.launch(request);
}

GpuKernel ConvInputGrad::gpu(const GpuRequest& request) const {
  const bool adds = numel(request.operands[0]) > 0 && numel(request.operands[1]) > 0;
  return adds ? library_kernel(request) : zeros_kernel(request);
}

GpuKernel ConvKernelGrad::gpu(const GpuRequest& request) const {
  // With a bias and no input channels, the bias still has a gradient: its results are not all empty.
  const bool adds = numel(request.operands[1]) > 0;
  return adds ? library_kernel(request) : zeros_kernel(request);
}

}  // namespace pmaptrain::ops
