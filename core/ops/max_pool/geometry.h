// Sizes of one pooling, the same for it and its gradient.
#pragma once

#include "core/ops/conv/window.h"

namespace pmaptrain::ops {

struct PoolGeometry {
  std::int64_t n = 0, c = 0;
  Window h, w;

  Shape x_shape() const { return {n, h.in, w.in, c}; }
  Shape y_shape() const { return {n, h.out, w.out, c}; }
};

// Throws TypeError that names the op called `op` where the attributes do not go together with the image.
PoolGeometry pool_geometry(std::string_view op, const Shape& x, std::span<const std::int64_t> window,
                           std::span<const std::int64_t> strides,
                           std::span<const std::pair<std::int64_t, std::int64_t>> padding);

}  // namespace pmaptrain::ops
