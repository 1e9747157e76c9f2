// The sizes of one call of a convolution or of one of its gradients.
#pragma once

#include "core/ops/conv/conv.h"
#include "core/runtime/cuda/work.h"

namespace pmaptrain::cuda {

enum class ConvKind : std::uint8_t { forward, input_grad, kernel_grad };

struct ConvShape {
  ConvKind kind = ConvKind::forward;
  Shape x, kernel, y;  // [N,H,W,C], [KH,KW,C/groups,O], [N,OH,OW,O]
  std::vector<std::int64_t> strides, dilation;
  ops::Padding padding;
  bool relu = false;
  std::int64_t calls = 1;  // of one logical device each, where not all of them are one batch

  std::int64_t kernel_rows() const { return kernel[0] * kernel[1] * kernel[2]; }  // of the kernel as a matrix [HWI, O]
  std::int64_t pixels() const { return y[0] * y[1] * y[2]; }
};

ConvShape conv_shape(const Op& op, const GpuRequest& request);

}  // namespace pmaptrain::cuda
