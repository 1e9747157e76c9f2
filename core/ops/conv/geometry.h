// The sizes of a convolution, which its two gradients share.
#pragma once

#include "core/ops/conv/conv.h"
#include "core/ops/conv/window.h"

namespace pmaptrain::ops {

struct ConvGeometry {
  std::int64_t n = 0, c = 0, o = 0;  // examples, input channels, output channels
  bool is_volume = false;            // whether arrays have a depth; that of an image is 1
  Window d, h, w;
  std::int64_t groups = 1;

  Shape x_shape() const { return shape_of(n, d.in, h.in, w.in, c); }
  Shape y_shape() const { return shape_of(n, d.out, h.out, w.out, o); }
  Shape kernel_shape() const {
    Shape shape = {d.window, h.window, w.window, c_of_group(), o};
    if (!is_volume) shape.erase(shape.begin());
    return shape;
  }
  std::int64_t c_of_group() const { return c / groups; }
  std::int64_t o_of_group() const { return o / groups; }
  // The pixels of y.
  std::int64_t pixels() const { return n * d.out * h.out * w.out; }
  // The number of additions and multiplications, without those of padding.
  double flops() const;
  // Of each dimension that the arrays have.
  template <class F>
  std::vector<std::int64_t> each(F&& f) const {
    std::vector<std::int64_t> values = {f(d), f(h), f(w)};
    if (!is_volume) values.erase(values.begin());
    return values;
  }

 private:
  Shape shape_of(std::int64_t examples, std::int64_t depth, std::int64_t height, std::int64_t width,
                 std::int64_t channels) const {
    Shape shape = {examples, depth, height, width, channels};
    if (!is_volume) shape.erase(shape.begin() + 1);
    return shape;
  }
};

// Throws TypeError that names the op `op` if the shapes do not fit together.
ConvGeometry conv_geometry(std::string_view op, const Shape& x, const Shape& kernel,
                           std::span<const std::int64_t> strides, const Padding& padding,
                           std::span<const std::int64_t> dilation = {}, std::int64_t groups = 1);

}  // namespace pmaptrain::ops
