// The loops of max pooling, a block of channels at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "core/ops/max_pool/geometry.h"

namespace pmaptrain::ops {

// Whether `value` takes a window from `best`: the first of equals keeps it, and so does the first NaN.
template <class T>
bool beats(T value, T best) {
  return !(value <= best) & (best == best);
}

// Calls f(x's first tap, y's element, window rows, window columns) for each window; offsets are of channel 0.
template <class F>
void for_each_window(const PoolGeometry& g, F&& f) {
  for (std::int64_t n = 0; n < g.n; ++n) {
    for (std::int64_t oh = 0; oh < g.h.out; ++oh) {
      const std::int64_t top = n * g.h.in + g.h.start(oh) + g.h.first(oh);
      const std::int64_t rows = g.h.last(oh) - g.h.first(oh);
      for (std::int64_t ow = 0; ow < g.w.out; ++ow) {
        const std::int64_t left = g.w.start(ow) + g.w.first(ow);
        f((top * g.w.in + left) * g.c, ((n * g.h.out + oh) * g.w.out + ow) * g.c, rows, g.w.last(ow) - g.w.first(ow));
      }
    }
  }
}

// The maxima of `width` channels of one window. `row` is the distance between rows of x, `column` between columns.
template <std::size_t width, class T>
void pool_block(const T* __restrict x, T* __restrict y, std::int64_t rows, std::int64_t columns, std::int64_t row,
                std::int64_t column) {
  T best[width];
  for (std::size_t l = 0; l < width; ++l) best[l] = x[l];
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const T* tap = x + i * row + j * column;
      for (std::size_t l = 0; l < width; ++l) best[l] = beats(tap[l], best[l]) ? tap[l] : best[l];
    }
  }
  for (std::size_t l = 0; l < width; ++l) y[l] = best[l];
}

// Adds dy of `width` channels of one window to the first maximum.
template <std::size_t width, class T>
void pool_grad_block(const T* __restrict x, const T* __restrict dy, T* __restrict dx, std::int64_t rows,
                     std::int64_t columns, std::int64_t row, std::int64_t column) {
  // As wide as T, so that a comparison's mask serves both.
  using Index = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
  T best[width];
  Index winner[width] = {};
  for (std::size_t l = 0; l < width; ++l) best[l] = x[l];
  Index index = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j, ++index) {
      const T* tap = x + i * row + j * column;
      for (std::size_t l = 0; l < width; ++l) {
        winner[l] = beats(tap[l], best[l]) ? index : winner[l];
        best[l] = beats(tap[l], best[l]) ? tap[l] : best[l];
      }
    }
  }
  index = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j, ++index) {
      T* tap = dx + i * row + j * column;
      for (std::size_t l = 0; l < width; ++l) tap[l] += winner[l] == index ? dy[l] : T{};
    }
  }
}

template <class T>
void max_pool(const PoolGeometry& g, const T* x, T* y) {
  for_each_window(g, [&](std::int64_t at_x, std::int64_t at_y, std::int64_t rows, std::int64_t columns) {
    std::int64_t c = 0;
    for (; c + 16 <= g.c; c += 16) pool_block<16>(x + at_x + c, y + at_y + c, rows, columns, g.w.in * g.c, g.c);
    for (; c < g.c; ++c) pool_block<1>(x + at_x + c, y + at_y + c, rows, columns, g.w.in * g.c, g.c);
  });
}

template <class T>
void max_pool_grad(const PoolGeometry& g, const T* x, const T* dy, T* dx) {
  std::fill(dx, dx + numel(g.x_shape()), T{});
  for_each_window(g, [&](std::int64_t at_x, std::int64_t at_y, std::int64_t rows, std::int64_t columns) {
    std::int64_t c = 0;
    for (; c + 16 <= g.c; c += 16) {
      pool_grad_block<16>(x + at_x + c, dy + at_y + c, dx + at_x + c, rows, columns, g.w.in * g.c, g.c);
    }
    for (; c < g.c; ++c) {
      pool_grad_block<1>(x + at_x + c, dy + at_y + c, dx + at_x + c, rows, columns, g.w.in * g.c, g.c);
    }
  });
}

}  // namespace pmaptrain::ops
