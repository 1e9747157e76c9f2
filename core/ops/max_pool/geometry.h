// Sizes, costs and checks of poolings and their gradients.
#pragma once

#include "core/graph/op.h"
#include "core/ops/conv/window.h"

namespace pmaptrain::ops {

struct PoolGeometry {
  std::int64_t n = 0, c = 0;
  Window h, w;

  Shape x_shape() const { return {n, h.in, w.in, c}; }
  Shape y_shape() const { return {n, h.out, w.out, c}; }
};

// Throws TypeError that names the op `op` if the attributes do not fit the image.
PoolGeometry pool_geometry(std::string_view op, const Shape& x, std::span<const std::int64_t> window,
                           std::span<const std::int64_t> strides,
                           std::span<const std::pair<std::int64_t, std::int64_t>> padding);

// Counts one operation for each element of each window.
Cost pool_cost(const PoolGeometry& geometry, std::span<const Type> operands, std::span<const Type> results);

// Throws TypeError (rule 6) unless dy has the shape of the result of pooling x.
void expect_pooled(std::string_view op, const PoolGeometry& geometry, const Shape& dy);

}  // namespace pmaptrain::ops
