#include <algorithm>

#include "core/ops/conv/conv.h"
#include "core/ops/matmul/product.h"

namespace pmaptrain::ops {
namespace {

template <class T>
GpuConv call_of(const T& op, GpuConv::Kind kind, const GpuRequest& request, bool one_batch) {
  GpuConv call;
  call.kind = kind;
  const Shape &first = request.operands[0].shape, &second = request.operands[1].shape;
  const Shape& result = request.results[0].shape;
  switch (kind) {
    case GpuConv::Kind::forward: call.x = first, call.kernel = second, call.y = result; break;
    case GpuConv::Kind::input_grad: call.kernel = first, call.y = second, call.x = result; break;
    case GpuConv::Kind::kernel_grad: call.x = first, call.y = second, call.kernel = result; break;
  }
  call.strides = op.strides;
  call.dilation = op.dilation;
  call.padding = op.padding;
  call.operands = request.operands[0].dtype;
  call.result = request.results[0].dtype;
  if (one_batch) {
    call.x[0] *= request.devices;
    call.y[0] *= request.devices;
  } else {
    call.calls = request.devices;
  }
  return call;
}

}  // namespace

// Without input channels, each pixel equals the bias.
GpuKernel Conv::gpu(const GpuRequest& request) const {
  const Shape& y = request.results[0].shape;
  if (numel(request.operands[0]) == 0 || numel(request.operands[1]) == 0) {
    return GpuProduct{.m = numel(y) / std::max<std::int64_t>(1, y.back()), .n = y.back(), .relu = relu}.launch(request);
  }
  const bool has_bias = request.operands.size() == 3;
  const bool one_batch = request.stacked[0] && !request.stacked[1] && (!has_bias || !request.stacked[2]);
  GpuConv call = call_of(*this, GpuConv::Kind::forward, request, one_batch);
  call.relu = relu;
  if (has_bias) call.bias = request.operands[2].dtype;
  return one_command(request, std::move(call));
}

GpuKernel ConvInputGrad::gpu(const GpuRequest& request) const {
  if (numel(request.operands[0]) == 0 || numel(request.operands[1]) == 0) return zeros_kernel(request);
  const bool one_batch = !request.stacked[0] && request.stacked[1];
  return one_command(request, call_of(*this, GpuConv::Kind::input_grad, request, one_batch));
}

GpuKernel ConvKernelGrad::gpu(const GpuRequest& request) const {
  // With a bias and no input channels, the bias still has a gradient: its results are not all empty.
  if (numel(request.operands[1]) == 0) return zeros_kernel(request);
  GpuConv call = call_of(*this, GpuConv::Kind::kernel_grad, request, false);
  if (bias) call.bias = request.results[1].dtype;
  return one_command(request, std::move(call));
}

}  // namespace pmaptrain::ops
