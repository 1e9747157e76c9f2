// Compiled once for each instruction set; the best one for the CPU is chosen when the program runs.
#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include "core/ops/conv/depthwise_simd.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/ops/conv/depthwise_simd.cpp"
// foreach_target.h comes first: it includes this file again for each other instruction set.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "core/ops/support/channels-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pmaptrain::ops {
namespace HWY_NAMESPACE {

// The window elements that targets use, and the distances between neighbouring ones, in floats.
struct KernelTaps {
  std::int64_t rows, columns;
  std::int64_t kernel_row, kernel_column;
  std::int64_t source_row, source_column;
};

// A line of targets; distances are in floats.
struct Line {
  std::int64_t count, source_stride, target_stride;
};

// Targets that use the same taps: a run of rows times a run of columns. `inner` is the longer side.
struct Rectangle {
  KernelTaps taps;
  std::int64_t kernel, source, target;  // offsets of the first tap, and of the first target's source and own
  Line outer, inner;
};

Rectangle rectangle(const DepthwisePass& pass, const Run& row, const Run& column) {
  const std::int64_t pixel = pass.features, source_row = pass.source_columns * pixel;
  const std::int64_t target_row = pass.target_columns * pixel, kernel_row = pass.window_columns * pixel;
  const Line down{row.count, row.source_stride * source_row, row.stride * target_row};
  const Line along{column.count, column.source_stride * pixel, column.stride * pixel};
  const bool wide = along.count >= down.count;
  return {.taps = {.rows = row.taps,
                   .columns = column.taps,
                   .kernel_row = row.tap_stride * kernel_row,
                   .kernel_column = column.tap_stride * pixel,
                   .source_row = row.source_tap_stride * source_row,
                   .source_column = column.source_tap_stride * pixel},
          .kernel = row.tap * kernel_row + column.tap * pixel,
          .source = row.source * source_row + column.source * pixel,
          .target = row.first * target_row + column.first * pixel,
          .outer = wide ? down : along,
          .inner = wide ? along : down};
}

// A kernel vector is used for `tile` neighbouring targets, whose independent sums also hide latency. `columns` equals
// taps.columns if that is a compile-time constant, else 0.
template <int tile, int columns, class D>
HWY_INLINE void sum_taps(D d, const KernelTaps& taps, const float* source, std::int64_t source_stride,
                         const float* kernel, const float* bias, bool relu, float* target, std::int64_t target_stride) {
  constexpr std::size_t size = tile;
  hn::Vec<D> sums[size];
  const hn::Vec<D> start = bias == nullptr ? hn::Zero(d) : hn::LoadU(d, bias);
  for (int t = 0; t < tile; ++t) sums[t] = start;
  const auto add = [&](const float* from, const float* weights) HWY_ATTR {
    const hn::Vec<D> weight = hn::LoadU(d, weights);
    for (int t = 0; t < tile; ++t) sums[t] = hn::MulAdd(hn::LoadU(d, from + t * source_stride), weight, sums[t]);
  };
  for (std::int64_t i = 0; i < taps.rows; ++i) {
    const float* const from = source + i * taps.source_row;
    const float* const weights = kernel + i * taps.kernel_row;
    if constexpr (columns > 0) {
      for (int j = 0; j < columns; ++j) add(from + j * taps.source_column, weights + j * taps.kernel_column);
    } else {
      for (std::int64_t j = 0; j < taps.columns; ++j)
        add(from + j * taps.source_column, weights + j * taps.kernel_column);
    }
  }
  for (int t = 0; t < tile; ++t) {
    if (relu) sums[t] = hn::IfThenZeroElse(hn::Lt(sums[t], hn::Zero(d)), sums[t]);  // keeps a NaN
    hn::StoreU(sums[t], d, target + t * target_stride);
  }
}

// Processes all features of a tile. It is a separate function so that its loops have all registers.
template <int tile, int columns>
HWY_NOINLINE void sum_tile(const KernelTaps& taps, std::int64_t features, const float* source,
                           std::int64_t source_stride, const float* kernel, const float* bias, bool relu, float* target,
                           std::int64_t target_stride) {
  for_each_vector(features, [&](auto d, std::int64_t f) HWY_ATTR {
    sum_taps<tile, columns>(d, taps, source + f, source_stride, kernel + f, bias == nullptr ? bias : bias + f, relu,
                            target + f, target_stride);
  });
}

void depthwise_sums(const DepthwisePass& pass, const float* source, const float* kernel, const float* bias, bool relu,
                    float* target) {
  const auto sum = [&](const Rectangle& part, std::int64_t p) HWY_ATTR {
    std::int64_t q = 0;
    const auto take = [&](auto tile) HWY_ATTR {
      const auto function = part.taps.columns == 3 ? sum_tile<tile(), 3> : sum_tile<tile(), 0>;
      for (; q + tile() <= part.inner.count; q += tile()) {
        const float* const from = source + part.source + p * part.outer.source_stride + q * part.inner.source_stride;
        float* const to = target + part.target + p * part.outer.target_stride + q * part.inner.target_stride;
        function(part.taps, pass.features, from, part.inner.source_stride, kernel + part.kernel, bias, relu, to,
                 part.inner.target_stride);
      }
    };
    take(std::integral_constant<int, 8>());
    take(std::integral_constant<int, 4>());
    take(std::integral_constant<int, 1>());
  };
  for (const Run& row : pass.rows) {
    for (const Run& column : pass.columns) {
      const Rectangle part = rectangle(pass, row, column);
      for (std::int64_t p = 0; p < part.outer.count; ++p) sum(part, p);
    }
  }
}

// Processes one vector of features for `rows` x `columns` taps over a rectangle. The taps share the loads of the
// targets.
template <int rows, int columns, class D>
HWY_INLINE void sum_pixels(D d, const Rectangle& part, const float* source, const float* target, float* dkernel) {
  constexpr std::size_t height = rows, width = columns;
  hn::Vec<D> sums[height][width];
  for (auto& row : sums) {
    for (auto& sum : row) sum = hn::Zero(d);
  }
  for (std::int64_t p = 0; p < part.outer.count; ++p) {
    const float* from = source + p * part.outer.source_stride;
    const float* at = target + p * part.outer.target_stride;
    for (std::int64_t q = 0; q < part.inner.count; ++q) {
      const hn::Vec<D> pixel = hn::LoadU(d, at);
      for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < columns; ++j) {
          const hn::Vec<D> x = hn::LoadU(d, from + i * part.taps.source_row + j * part.taps.source_column);
          sums[i][j] = hn::MulAdd(x, pixel, sums[i][j]);
        }
      }
      from += part.inner.source_stride;
      at += part.inner.target_stride;
    }
  }
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      float* const to = dkernel + i * part.taps.kernel_row + j * part.taps.kernel_column;
      hn::StoreU(hn::Add(hn::LoadU(d, to), sums[i][j]), d, to);
    }
  }
}

// Processes all features of some taps. It is a separate function like sum_tile.
template <int rows, int columns>
HWY_NOINLINE void sum_rectangle(const Rectangle& part, std::int64_t features, const float* source, const float* target,
                                float* dkernel) {
  for_each_vector(features, [&](auto d, std::int64_t f)
                                HWY_ATTR { sum_pixels<rows, columns>(d, part, source + f, target + f, dkernel + f); });
}

// Processes up to three by three taps at a time.
void depthwise_kernel_sums(const DepthwisePass& pass, const float* source, const float* target, float* dkernel) {
  constexpr decltype(&sum_rectangle<1, 1>) functions[3][3] = {
      {sum_rectangle<1, 1>, sum_rectangle<1, 2>, sum_rectangle<1, 3>},
      {sum_rectangle<2, 1>, sum_rectangle<2, 2>, sum_rectangle<2, 3>},
      {sum_rectangle<3, 1>, sum_rectangle<3, 2>, sum_rectangle<3, 3>}};
  for (const Run& row : pass.rows) {
    for (const Run& column : pass.columns) {
      const Rectangle part = rectangle(pass, row, column);
      const KernelTaps& taps = part.taps;
      for (std::int64_t i = 0; i < taps.rows; i += 3) {
        for (std::int64_t j = 0; j < taps.columns; j += 3) {
          const std::int64_t rows = std::min<std::int64_t>(taps.rows - i, 3);
          const std::int64_t columns = std::min<std::int64_t>(taps.columns - j, 3);
          functions[rows - 1][columns - 1](
              part, pass.features, source + part.source + i * taps.source_row + j * taps.source_column,
              target + part.target, dkernel + part.kernel + i * taps.kernel_row + j * taps.kernel_column);
        }
      }
    }
  }
}

void repeat(std::size_t n, std::size_t times, const float* from, float* to) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  if (times == 2) {
    for (; i + lanes <= n; i += lanes) {
      const auto v = hn::LoadU(d, from + i);
      hn::StoreInterleaved2(v, v, d, to + i * 2);
    }
  } else if (times == 3) {
    for (; i + lanes <= n; i += lanes) {
      const auto v = hn::LoadU(d, from + i);
      hn::StoreInterleaved3(v, v, v, d, to + i * 3);
    }
  } else if (times == 4) {
    for (; i + lanes <= n; i += lanes) {
      const auto v = hn::LoadU(d, from + i);
      hn::StoreInterleaved4(v, v, v, v, d, to + i * 4);
    }
  }
  for (; i < n; ++i) std::fill_n(to + i * times, times, from[i]);
}

void add(std::size_t n, std::size_t times, const float* from, float* to) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<decltype(d)> a, b, c, e;
  std::size_t i = 0;
  if (times == 2) {
    for (; i + lanes <= n; i += lanes) {
      hn::LoadInterleaved2(d, from + i * 2, a, b);
      hn::StoreU(hn::Add(a, b), d, to + i);
    }
  } else if (times == 3) {
    for (; i + lanes <= n; i += lanes) {
      hn::LoadInterleaved3(d, from + i * 3, a, b, c);
      hn::StoreU(hn::Add(hn::Add(a, b), c), d, to + i);
    }
  } else if (times == 4) {
    for (; i + lanes <= n; i += lanes) {
      hn::LoadInterleaved4(d, from + i * 4, a, b, c, e);
      hn::StoreU(hn::Add(hn::Add(hn::Add(a, b), c), e), d, to + i);
    }
  }
  for (; i < n; ++i) {
    float sum = from[i * times];
    for (std::size_t j = 1; j < times; ++j) sum += from[i * times + j];
    to[i] = sum;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pmaptrain::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pmaptrain::ops {

HWY_EXPORT(depthwise_sums);
HWY_EXPORT(depthwise_kernel_sums);
HWY_EXPORT(repeat);
HWY_EXPORT(add);

void depthwise_sums(const DepthwisePass& pass, const float* source, const float* kernel, const float* bias, bool relu,
                    float* target) {
  HWY_DYNAMIC_DISPATCH(depthwise_sums)(pass, source, kernel, bias, relu, target);
}

void depthwise_kernel_sums(const DepthwisePass& pass, const float* source, const float* target, float* dkernel) {
  HWY_DYNAMIC_DISPATCH(depthwise_kernel_sums)(pass, source, target, dkernel);
}

void repeat_elements(std::size_t n, std::size_t times, const float* from, float* to) {
  HWY_DYNAMIC_DISPATCH(repeat)(n, times, from, to);
}

void add_neighbours(std::size_t n, std::size_t times, const float* from, float* to) {
  HWY_DYNAMIC_DISPATCH(add)(n, times, from, to);
}

}  // namespace pmaptrain::ops
#endif  // HWY_ONCE

#endif  // PMAPTRAIN_REFERENCE_KERNELS
