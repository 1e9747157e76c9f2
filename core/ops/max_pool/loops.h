// The loops of max pooling, a block of channels at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "core/ops/max_pool/geometry.h"

namespace pmaptrain::ops {

// Neighbouring channels as one value, by g++'s and clang's vectors: a compiler left to find them here makes branches of
// the comparisons instead (20 times slower). They have 16 bytes, which every 64-bit machine has registers for; wider
// ones gain nothing, since memory is the limit. Comparisons give whole numbers, 0 or -1, of the elements' width.
template <class T, std::size_t width>
struct Block {
  using Whole = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
  typedef T Values __attribute__((vector_size(width * sizeof(T)), aligned(alignof(T)), may_alias));
  typedef Whole Wholes __attribute__((vector_size(width * sizeof(T))));
};

// The sizes of one window's part of the image: `row` and `column` are the distances between neighbours in x.
struct Taps {
  std::int64_t rows, columns, row, column;
};

// Whether a tap takes its window from the best so far: `!(tap <= best) & (best == best)`. The first of equals keeps it,
// and so does the first NaN.

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

// The maxima of one window in `width` channels.
template <std::size_t width, class T>
void pool_block(const T* x, T* y, const Taps& taps) {
  using Values = typename Block<T, width>::Values;
  Values best = *reinterpret_cast<const Values*>(x);
  for (std::int64_t i = 0; i < taps.rows; ++i) {
    for (std::int64_t j = 0; j < taps.columns; ++j) {
      const Values tap = *reinterpret_cast<const Values*>(x + i * taps.row + j * taps.column);
      best = (~(tap <= best) & (best == best)) ? tap : best;
    }
  }
  *reinterpret_cast<Values*>(y) = best;
}

// Adds the cotangents of one window in `width` channels to its first maxima.
template <std::size_t width, class T>
void pool_grad_block(const T* x, const T* dy, T* dx, const Taps& taps) {
  using Values = typename Block<T, width>::Values;
  using Wholes = typename Block<T, width>::Wholes;
  Values best = *reinterpret_cast<const Values*>(x);
  Wholes winner = {};
  Wholes index = {};
  for (std::int64_t i = 0; i < taps.rows; ++i) {
    for (std::int64_t j = 0; j < taps.columns; ++j) {
      const Values tap = *reinterpret_cast<const Values*>(x + i * taps.row + j * taps.column);
      const Wholes wins = ~(tap <= best) & (best == best);
      best = wins ? tap : best;
      winner = wins ? index : winner;
      index += 1;
    }
  }
  const Values cotangents = *reinterpret_cast<const Values*>(dy);
  const Values nothing = {};
  index = Wholes{};
  for (std::int64_t i = 0; i < taps.rows; ++i) {
    for (std::int64_t j = 0; j < taps.columns; ++j) {
      *reinterpret_cast<Values*>(dx + i * taps.row + j * taps.column) += (winner == index) ? cotangents : nothing;
      index += 1;
    }
  }
}

template <class T>
inline constexpr std::int64_t block_width = 16 / sizeof(T);

template <class T>
void max_pool(const PoolGeometry& g, const T* x, T* y) {
  for_each_window(g, [&](std::int64_t at_x, std::int64_t at_y, std::int64_t rows, std::int64_t columns) {
    const Taps taps{rows, columns, g.w.in * g.c, g.c};
    std::int64_t c = 0;
    for (; c + block_width<T> <= g.c; c += block_width<T>) pool_block<block_width<T>>(x + at_x + c, y + at_y + c, taps);
    for (; c < g.c; ++c) pool_block<1>(x + at_x + c, y + at_y + c, taps);
  });
}

template <class T>
void max_pool_grad(const PoolGeometry& g, const T* x, const T* dy, T* dx) {
  std::fill(dx, dx + numel(g.x_shape()), T{});
  for_each_window(g, [&](std::int64_t at_x, std::int64_t at_y, std::int64_t rows, std::int64_t columns) {
    const Taps taps{rows, columns, g.w.in * g.c, g.c};
    std::int64_t c = 0;
    for (; c + block_width<T> <= g.c; c += block_width<T>) {
      pool_grad_block<block_width<T>>(x + at_x + c, dy + at_y + c, dx + at_x + c, taps);
    }
    for (; c < g.c; ++c) {
      pool_grad_block<1>(x + at_x + c, dy + at_y + c, dx + at_x + c, taps);
    }
  });
}

}  // namespace pmaptrain::ops
