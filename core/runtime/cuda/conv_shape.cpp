#include "core/runtime/cuda/conv_shape.h"

namespace pmaptrain::cuda {
namespace {

template <class T>
ConvShape with_attributes(ConvKind kind, const T& op) {
  ConvShape shape;
  shape.kind = kind;
  shape.strides = op.strides;
  shape.dilation = op.dilation;
  shape.padding = op.padding;
  return shape;
}

}  // namespace

ConvShape conv_shape(const Op& op, const GpuRequest& request) {
  ConvShape shape;
  bool one_batch = false;  // the devices' examples lie one after another, and all use the same kernel and bias
  if (op.name() == ops::Conv::name) {
    const auto& conv = *static_cast<const ops::Conv*>(op.data());
    shape = with_attributes(ConvKind::forward, conv);
    shape.relu = conv.relu;
    shape.x = request.operands[0].shape;
    shape.kernel = request.operands[1].shape;
    shape.y = request.results[0].shape;
    one_batch = request.stacked[0] && !request.stacked[1] && (request.operands.size() < 3 || !request.stacked[2]);
  } else if (op.name() == ops::ConvInputGrad::name) {
    shape = with_attributes(ConvKind::input_grad, *static_cast<const ops::ConvInputGrad*>(op.data()));
    shape.kernel = request.operands[0].shape;
    shape.y = request.operands[1].shape;
    shape.x = request.results[0].shape;
    one_batch = !request.stacked[0] && request.stacked[1];
  } else {
    shape = with_attributes(ConvKind::kernel_grad, *static_cast<const ops::ConvKernelGrad*>(op.data()));
    shape.x = request.operands[0].shape;
    shape.y = request.operands[1].shape;
    shape.kernel = request.results[0].shape;
  }
  if (one_batch) {
    shape.x[0] *= request.devices;
    shape.y[0] *= request.devices;
  } else {
    shape.calls = request.devices;
  }
  return shape;
}

}  // namespace pmaptrain::cuda
