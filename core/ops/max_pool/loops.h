// The loops of max pooling, a block of channels at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <type_traits>

#include "core/ops/max_pool/geometry.h"

namespace pmaptrain::ops {

// Neighbouring channels as one value, by g++'s and clang's vectors: a compiler left to find them here makes branches of
// the comparisons instead (20 times slower). They have 16 bytes, which every 64-bit machine has registers for. A
// comparison gives whole numbers, 0 or -1, of the elements' width.
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

// The maxima of one window in `vectors` blocks of `width` channels. Whether there was a NaN is kept apart, which leaves
// the comparison one instruction.
template <std::size_t vectors, std::size_t width, class T>
void pool_blocks(const T* x, T* y, const Taps& taps) {
  using Values = typename Block<T, width>::Values;
  using Wholes = typename Block<T, width>::Wholes;
  Values best[vectors];
  Wholes nan[vectors] = {};
  for (std::size_t v = 0; v < vectors; ++v) best[v] = reinterpret_cast<const Values*>(x)[v];
  for (std::int64_t i = 0; i < taps.rows; ++i) {
    const T* row = x + i * taps.row;
    for (std::int64_t j = 0; j < taps.columns; ++j, row += taps.column) {
      for (std::size_t v = 0; v < vectors; ++v) {
        const Values tap = reinterpret_cast<const Values*>(row)[v];
        best[v] = tap > best[v] ? tap : best[v];
        nan[v] |= tap != tap;
      }
    }
  }
  const Values not_a_number = Values{} + std::numeric_limits<T>::quiet_NaN();
  for (std::size_t v = 0; v < vectors; ++v) reinterpret_cast<Values*>(y)[v] = nan[v] ? not_a_number : best[v];
}

// Adds the cotangents of one window in `vectors` blocks of `width` channels to its first maxima:
// the first of equals keeps the window, and so does the first NaN.
template <std::size_t vectors, std::size_t width, class T>
void pool_grad_blocks(const T* x, const T* dy, T* dx, const Taps& taps, bool relu) {
  using Values = typename Block<T, width>::Values;
  using Wholes = typename Block<T, width>::Wholes;
  Values best[vectors];
  Wholes winner[vectors] = {};
  for (std::size_t v = 0; v < vectors; ++v) best[v] = reinterpret_cast<const Values*>(x)[v];
  Wholes index = {};
  for (std::int64_t i = 0; i < taps.rows; ++i) {
    for (std::int64_t j = 0; j < taps.columns; ++j) {
      const Values* tap = reinterpret_cast<const Values*>(x + i * taps.row + j * taps.column);
      for (std::size_t v = 0; v < vectors; ++v) {
        const Wholes wins = ~(tap[v] <= best[v]) & (best[v] == best[v]);
        best[v] = wins ? tap[v] : best[v];
        winner[v] = wins ? index : winner[v];
      }
      index += 1;
    }
  }
  const Values nothing = {};
  for (std::size_t v = 0; relu && v < vectors; ++v) winner[v] |= ~(best[v] > nothing);  // no tap has index -1
  index = Wholes{};
  for (std::int64_t i = 0; i < taps.rows; ++i) {
    for (std::int64_t j = 0; j < taps.columns; ++j) {
      Values* tap = reinterpret_cast<Values*>(dx + i * taps.row + j * taps.column);
      for (std::size_t v = 0; v < vectors; ++v) {
        tap[v] += (winner[v] == index) ? reinterpret_cast<const Values*>(dy)[v] : nothing;
      }
      index += 1;
    }
  }
}

template <class T>
inline constexpr std::size_t block_width = 16 / sizeof(T);

// Calls f.template operator()<vectors, width>(first channel) until all channels are done: several blocks at a time
// while they last, which spreads the cost of walking the window.
template <class T, class F>
void for_each_block(std::int64_t channels, F&& f) {
  constexpr auto width = static_cast<std::int64_t>(block_width<T>);
  std::int64_t c = 0;
  for (; c + 4 * width <= channels; c += 4 * width) f.template operator()<4, block_width<T>>(c);
  for (; c + width <= channels; c += width) f.template operator()<1, block_width<T>>(c);
  for (; c < channels; ++c) f.template operator()<1, 1>(c);
}

template <class T>
void max_pool(const PoolGeometry& g, const T* x, T* y) {
  for_each_window(g, [&](std::int64_t at_x, std::int64_t at_y, std::int64_t rows, std::int64_t columns) {
    const Taps taps{rows, columns, g.w.in * g.c, g.c};
    for_each_block<T>(g.c, [&]<std::size_t vectors, std::size_t width>(std::int64_t c) {
      pool_blocks<vectors, width>(x + at_x + c, y + at_y + c, taps);
    });
  });
}

template <class T>
void max_pool_grad(const PoolGeometry& g, const T* x, const T* dy, T* dx, bool relu) {
  std::fill(dx, dx + numel(g.x_shape()), T{});
  for_each_window(g, [&](std::int64_t at_x, std::int64_t at_y, std::int64_t rows, std::int64_t columns) {
    const Taps taps{rows, columns, g.w.in * g.c, g.c};
    for_each_block<T>(g.c, [&]<std::size_t vectors, std::size_t width>(std::int64_t c) {
      pool_grad_blocks<vectors, width>(x + at_x + c, dy + at_y + c, dx + at_x + c, taps, relu);
    });
  });
}

}  // namespace pmaptrain::ops
