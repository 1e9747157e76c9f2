// The sizes of a convolution, which its two gradients share.
#pragma once

#include "core/ops/conv/conv.h"
#include "core/ops/conv/window.h"

namespace pmaptrain::ops {

struct ConvGeometry {
  std::int64_t n = 0, c = 0, o = 0;  // examples, input channels, output channels
  Window h, w;
  std::int64_t groups = 1;

  Shape x_shape() const { return {n, h.in, w.in, c}; }
  Shape kernel_shape() const { return {h.window, w.window, c_of_group(), o}; }
  std::int64_t c_of_group() const { return c / groups; }
  std::int64_t o_of_group() const { return o / groups; }
  Shape y_shape() const { return {n, h.out, w.out, o}; }
  // The number of additions and multiplications, without those of padding.
  double flops() const;
};

// Throws TypeError that names the op `op` if the shapes do not fit together.
ConvGeometry conv_geometry(std::string_view op, const Shape& x, const Shape& kernel,
                           std::span<const std::int64_t> strides, const Padding& padding,
                           std::span<const std::int64_t> dilation = {}, std::int64_t groups = 1);

}  // namespace pmaptrain::ops
