#include "core/ops/max_pool/max_pool.h"

#include <fmt/format.h>

#include "core/graph/builder.h"
#include "core/ops/max_pool/geometry.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
using pmaptrain::to_string;

PoolGeometry pool_geometry(std::string_view op, const Shape& x, std::span<const std::int64_t> window,
                           std::span<const std::int64_t> strides,
                           std::span<const std::pair<std::int64_t, std::int64_t>> padding) {
  if (x.size() != 4) {
    throw TypeError(6, fmt::format("{} of shape {}", op, to_string(x)),
                    "an image has four dimensions: examples, height, width, channels");
  }
  const Windows windows = slide(op, x, window, strides, padding);
  for (const Window& each : windows) {
    if (each.in == 0 || each.low >= each.window || each.high >= each.window) {
      throw TypeError(6,
                      fmt::format("{} of {} with window [{},{}] and padding {}: a window would see padding only", op,
                                  to_string(x), window[0], window[1], pairs_text(padding)),
                      "padding is smaller than the window, and the image is not empty");
    }
  }
  return {.n = x[0], .c = x[3], .h = windows[1], .w = windows[2]};
}

Cost pool_cost(const PoolGeometry& geometry, std::span<const Type> operands, std::span<const Type> results) {
  return traffic(operands, results,
                 static_cast<double>(numel(geometry.y_shape())) * static_cast<double>(geometry.h.window) *
                     static_cast<double>(geometry.w.window));
}

void expect_pooled(std::string_view op, const PoolGeometry& geometry, const Shape& dy) {
  const Shape y = geometry.y_shape();
  if (dy == y) return;
  throw TypeError(
      6,
      fmt::format("{}: x {} pools to {}, but dy is {}", op, to_string(geometry.x_shape()), to_string(y), to_string(dy)),
      "dy has the shape of the pooling's result");
}

std::vector<Type> MaxPool::infer(const InferContext& context) const {
  static constexpr std::string_view names[] = {"x"};
  expect_floating(name, context.operands, names);
  const Type& x = context.operands[0];
  return {{x.dtype, pool_geometry(name, x.shape, window, strides, padding).y_shape(), {}}};
}

std::vector<Type> MaxPoolGrad::infer(const InferContext& context) const {
  static constexpr std::string_view names[] = {"x", "dy"};
  expect_floating(name, context.operands, names);
  const Type& x = context.operands[0];
  expect_pooled(name, pool_geometry(name, x.shape, window, strides, padding), context.operands[1].shape);
  return {{x.dtype, x.shape, {}}};
}

Cost MaxPool::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return pool_cost(pool_geometry(name, operands[0].shape, window, strides, padding), operands, results);
}

Cost MaxPoolGrad::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return pool_cost(pool_geometry(name, operands[0].shape, window, strides, padding), operands, results);
}

Cotangents MaxPool::derivative(VjpContext& context) const {
  Cotangents result(1);
  if (context.cotangents[0] && context.needed[0]) {
    result[0] = context.b.emit(MaxPoolGrad{window, strides, padding}, {context.operands[0], *context.cotangents[0]});
  }
  return result;
}

}  // namespace pmaptrain::ops
