#include <algorithm>
#include <cmath>

#include "core/ops/max_pool/geometry.h"
#include "core/ops/max_pool/max_pool.h"

namespace pmaptrain::ops {
namespace {

// Calls f(y's element, x's element) for each element of y and the first maximum of its window, row by row, or its first
// NaN.
template <class T, class F>
void for_each_maximum(const PoolGeometry& g, const T* x, F&& f) {
  for (std::int64_t y = 0; y < numel(g.y_shape()); ++y) {
    const std::int64_t c = y % g.c, ow = y / g.c % g.w.out, oh = y / g.c / g.w.out % g.h.out;
    const std::int64_t n = y / g.c / g.w.out / g.h.out;
    std::int64_t best = -1;
    for (std::int64_t h = g.h.start(oh) + g.h.first(oh); h < g.h.start(oh) + g.h.last(oh); ++h) {
      for (std::int64_t w = g.w.start(ow) + g.w.first(ow); w < g.w.start(ow) + g.w.last(ow); ++w) {
        const std::int64_t at = ((n * g.h.in + h) * g.w.in + w) * g.c + c;
        if (best < 0 || x[at] > x[best] || (std::isnan(x[at]) && !std::isnan(x[best]))) best = at;
      }
    }
    f(y, best);
  }
}

}  // namespace

void MaxPool::reference(const ReferenceCall& call) const {
  const PoolGeometry g = pool_geometry(name, call.operands[0].shape(), window, strides, padding);
  dispatch_floating_arithmetic(call.results[0].dtype(), [&]<class T>() {
    const T* x = call.operands[0].as<T>();
    for_each_maximum(g, x, [&](std::int64_t y, std::int64_t best) { call.results[0].as<T>()[y] = x[best]; });
  });
}

void MaxPoolGrad::reference(const ReferenceCall& call) const {
  const PoolGeometry g = pool_geometry(name, call.operands[0].shape(), window, strides, padding);
  dispatch_floating_arithmetic(call.results[0].dtype(), [&]<class T>() {
    const T *x = call.operands[0].as<T>(), *dy = call.operands[1].as<T>();
    T* dx = call.results[0].as<T>();
    std::fill_n(dx, call.results[0].size(), T{});
    for_each_maximum(g, x, [&](std::int64_t y, std::int64_t best) {
      if (!relu || x[best] > 0) dx[best] += dy[y];
    });
  });
}

}  // namespace pmaptrain::ops
