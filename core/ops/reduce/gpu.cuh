// Reductions over dimensions in the order of core/ops/reduce/loops.h, so with equal results. Each block of that order
// is reduced by one thread or, if its elements are contiguous, by the threads of one block. The partial results are
// then combined in order.
#pragma once

#include "core/ops/reduce/loops.h"
#include "core/ops/support/device.cuh"
// After what it uses.
#include "core/ops/reduce/parts.cuh"

namespace pmaptrain::ops::device {

// Converts an index over a few dimensions, innermost first, to an offset.
template <unsigned rank>
struct Walk {
  i64 sizes[rank], strides[rank];

  __device__ i64 offset(i64 index) const {
    i64 result = 0;
    for (unsigned d = 0; d < rank && index > 0; ++d) {
      result += index % sizes[d] * strides[d];
      index /= sizes[d];
    }
    return result;
  }
};

// The operand of a reduction: for each result (or row of results) and each of `reduced` outer indices, `rows`
// contiguous rows.
struct Source {
  Walk<5> kept_outside;
  Walk<3> reduced_outside;
  i64 reduced, rows;

  __device__ i64 offset(i64 kept, i64 outer) const { return kept_outside.offset(kept) + reduced_outside.offset(outer); }
};

// Combines `sum` with `count` elements, each `stride` after the one before, in order. Reads do not wait for one
// another: sixteen are under way before the first is combined.
template <class Reducer, class T>
__device__ Computed<T> combine_in_order(Computed<T> sum, const T* from, i64 count, i64 stride) {
  constexpr unsigned ahead = 16;
  i64 i = 0;
  for (; i + ahead <= count; i += ahead) {
    T read[ahead];
    UNROLL for (unsigned j = 0; j < ahead; ++j) read[j] = from[(i + j) * stride];
    UNROLL for (unsigned j = 0; j < ahead; ++j) sum = Reducer::combine(sum, static_cast<Computed<T>>(read[j]));
  }
  for (; i < count; ++i) sum = Reducer::combine(sum, static_cast<Computed<T>>(from[i * stride]));
  return sum;
}

inline constexpr i64 block_size = reduce_block, group_size = wide_group, narrow_size = narrow_group;

// For rows of single elements: parts[result, outer, chunk] is the reduction of reduce_block groups. Blocks have
// wide_group threads.
template <class Reducer, class T>
__device__ void reduce_row_parts(Computed<T>* parts, const T* x, i64 count, i64 chunks, const Source& source) {
  using C = Computed<T>;
  const auto combine = [](C a, C b) { return Reducer::combine(a, b); };
  SHARED(C, lanes, wide_group);
  for_each_block(count, [&](i64 unit) {
    const i64 chunk = unit % chunks, outer = unit / chunks % source.reduced, result = unit / chunks / source.reduced;
    const i64 all = source.rows / group_size - chunk * block_size;
    const i64 groups = all < block_size ? all : block_size;
    const T* const from = x + source.offset(result, outer) + chunk * block_size * group_size + threadIdx.x;
    lanes[threadIdx.x] = combine_in_order<Reducer>(static_cast<C>(*from), from + group_size, groups - 1, group_size);
    reduce_in_halves<wide_group>(lanes, combine);
    if (threadIdx.x == 0) parts[unit] = lanes[0];  // only this thread writes lanes[0] next
  });
}

// Adds the `left` elements after the last group of a row to `total`.
template <class Reducer, class C, class T>
__device__ C reduce_left(C total, const T* from, i64 left) {
  if (const i64 groups = left / narrow_size; groups > 0) {
    C lanes[narrow_size];
    for (i64 j = 0; j < narrow_size; ++j) {
      lanes[j] = static_cast<C>(from[j]);
      for (i64 i = 1; i < groups; ++i) lanes[j] = Reducer::combine(lanes[j], static_cast<C>(from[i * narrow_size + j]));
    }
    for (i64 half = narrow_size / 2; half > 0; half /= 2) {
      for (i64 j = 0; j < half; ++j) lanes[j] = Reducer::combine(lanes[j], lanes[j + half]);
    }
    total = Reducer::combine(total, lanes[0]);
    from += groups * narrow_size;
    left -= groups * narrow_size;
  }
  for (i64 i = 0; i < left; ++i) total = Reducer::combine(total, static_cast<C>(from[i]));
  return total;
}

template <class Reducer, class To, class T>
__device__ void reduce_rows(To* out, const T* x, const Computed<T>* parts, i64 count, i64 chunks,
                            const Source& source) {
  using C = Computed<T>;
  for_each_index(count, [&](i64 result) {
    C reduced = Reducer::template identity<C>();
    for (i64 outer = 0; outer < source.reduced; ++outer) {
      C total = Reducer::template identity<C>();
      for (i64 chunk = 0; chunk < chunks; ++chunk) {
        total = Reducer::combine(total, parts[(result * source.reduced + outer) * chunks + chunk]);
      }
      const i64 done = source.rows / group_size * group_size;
      total = reduce_left<Reducer>(total, x + source.offset(result, outer) + done, source.rows - done);
      reduced = Reducer::combine(reduced, total);
    }
    out[result] = static_cast<To>(reduced);
  });
}

// The same in one launch, for rows of one chunk; `reduced` is 1. Blocks have wide_group threads.
template <class Reducer, class To, class T>
__device__ void reduce_short_rows(To* out, const T* x, i64 count, const Source& source) {
  using C = Computed<T>;
  const auto combine = [](C a, C b) { return Reducer::combine(a, b); };
  SHARED(C, lanes, wide_group);
  for_each_block(count, [&](i64 result) {
    const T* const from = x + source.offset(result, 0);
    const i64 groups = source.rows / group_size, done = groups * group_size;
    lanes[threadIdx.x] = combine_in_order<Reducer>(static_cast<C>(from[threadIdx.x]), from + group_size + threadIdx.x,
                                                   groups - 1, group_size);
    reduce_in_halves<wide_group>(lanes, combine);
    const C total = combine(Reducer::template identity<C>(), lanes[0]);
    __syncthreads();  // until all threads have read it
    if (done + threadIdx.x < source.rows) lanes[threadIdx.x] = static_cast<C>(from[done + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) out[result] = static_cast<To>(reduce_left<Reducer>(total, lanes, source.rows - done));
    __syncthreads();
  });
}

// parts[row of results, outer, part] of the columns of a matrix, in the order of ColumnOrder.
template <class Reducer, class T>
__device__ void reduce_column_parts(Computed<T>* parts, const T* __restrict__ x, i64 count, const ColumnOrder& order,
                                    const Source& source) {
  const i64 all = order.parts(), in_blocks = order.parts_of_blocks(), wide = order.wide();
  const i64 longest = order.wide_rows() < block_size ? order.wide_rows() : block_size;
  const auto most = static_cast<unsigned>(longest < order.left() ? order.left() : longest);
  for_each_block((count + part_lanes - 1) / part_lanes, [&](i64 group) {
    const i64 own = group * part_lanes + threadIdx.x % part_lanes;
    const i64 i = own < count ? own : count - 1;
    const i64 part = i % all, outer = i / all % source.reduced, result = i / all / source.reduced;
    const bool is_left = part >= in_blocks;
    const i64 first = is_left ? order.wide_rows() : part / wide * block_size;  // of the wide rows
    const i64 stride = is_left ? order.columns : wide;
    const i64 rows = is_left ? order.left() : order.wide_rows() - first;
    const T* const from = x + source.offset(result, outer) + first * wide + (is_left ? part - in_blocks : part % wide);
    using C = Computed<T>;
    const C sum = reduce_part<Reducer, C>(Reducer::template identity<C>(),
                                          static_cast<unsigned>(rows < block_size ? rows : block_size), most,
                                          [&](unsigned row) { return static_cast<C>(from[row * stride]); });
    if (threadIdx.x < part_lanes && own < count) parts[own] = sum;
  });
}

template <class Reducer, class To>
__device__ void reduce_columns(To* out, const Computed<To>* parts, i64 count, const ColumnOrder& order, i64 outers) {
  using C = Computed<To>;
  for_each_block((count + part_lanes - 1) / part_lanes, [&](i64 group) {
    const i64 own = group * part_lanes + threadIdx.x % part_lanes;
    const i64 i = own < count ? own : count - 1;
    const i64 column = i % order.columns, result = i / order.columns;
    C reduced = Reducer::template identity<C>();
    for (i64 outer = 0; outer < outers; ++outer) {
      const Computed<To>* const first = parts + (result * outers + outer) * order.parts() + column;
      reduced = combine_parts<Reducer>(reduced, static_cast<unsigned>(order.columns),
                                       static_cast<unsigned>(order.group), static_cast<unsigned>(order.blocks()),
                                       order.left() > 0, [&](std::size_t at) { return first[at]; });
    }
    if (threadIdx.x < part_lanes && own < count) out[i] = static_cast<To>(reduced);
  });
}

// The same in one launch, for at most one block of wide rows; `reduced` is 1.
template <class Reducer, class To, class T>
__device__ void reduce_short_columns(To* out, const T* x, i64 count, i64 wide_rows, i64 columns, i64 group,
                                     const Source& source) {
  using C = Computed<T>;
  for_each_index(count, [&](i64 i) {
    const T* const from = x + source.offset(i / columns, 0) + i % columns;
    C reduced = Reducer::template identity<C>();
    for (i64 member = 0; member < group; ++member) {
      const C sum = combine_in_order<Reducer>(static_cast<C>(from[member * columns]), from + (group + member) * columns,
                                              wide_rows - 1, group * columns);
      reduced = Reducer::combine(reduced, sum);
    }
    const i64 done = wide_rows * group;
    if (done < source.rows) {
      const C rest = combine_in_order<Reducer>(static_cast<C>(from[done * columns]), from + (done + 1) * columns,
                                               source.rows - done - 1, columns);
      reduced = Reducer::combine(reduced, rest);
    }
    out[i] = static_cast<To>(reduced);
  });
}

#define PMAPTRAIN_SOURCE                                                                                      \
  i64 rows, i64 kept_size0, i64 kept_size1, i64 kept_size2, i64 kept_size3, i64 kept_size4, i64 kept_stride0, \
      i64 kept_stride1, i64 kept_stride2, i64 kept_stride3, i64 kept_stride4, i64 reduced, i64 reduced_size0, \
      i64 reduced_size1, i64 reduced_size2, i64 reduced_stride0, i64 reduced_stride1, i64 reduced_stride2
#define PMAPTRAIN_SOURCE_OF                                                                                            \
  Source {                                                                                                             \
    {{kept_size0, kept_size1, kept_size2, kept_size3, kept_size4},                                                     \
     {kept_stride0, kept_stride1, kept_stride2, kept_stride3, kept_stride4}},                                          \
        {{reduced_size0, reduced_size1, reduced_size2}, {reduced_stride0, reduced_stride1, reduced_stride2}}, reduced, \
        rows                                                                                                           \
  }

#define PMAPTRAIN_ROW_PARTS(Reducer, symbol, T)                                                                \
  extern "C" __global__ void symbol(Computed<T>* parts, const T* x, i64 count, i64 chunks, PMAPTRAIN_SOURCE) { \
    reduce_row_parts<Reducer>(parts, x, count, chunks, PMAPTRAIN_SOURCE_OF);                                   \
  }
#define PMAPTRAIN_ROWS(Reducer, symbol, To, T)                                                            \
  extern "C" __global__ void symbol(To* out, const T* x, const Computed<T>* parts, i64 count, i64 chunks, \
                                    PMAPTRAIN_SOURCE) {                                                   \
    reduce_rows<Reducer>(out, x, parts, count, chunks, PMAPTRAIN_SOURCE_OF);                              \
  }
#define PMAPTRAIN_SHORT_ROWS(Reducer, symbol, To, T)                                    \
  extern "C" __global__ void symbol(To* out, const T* x, i64 count, PMAPTRAIN_SOURCE) { \
    reduce_short_rows<Reducer>(out, x, count, PMAPTRAIN_SOURCE_OF);                     \
  }
#define PMAPTRAIN_COLUMN_PARTS(Reducer, symbol, T)                                                         \
  extern "C" __global__ void symbol(Computed<T>* parts, const T* x, i64 count, i64 columns, i64 group,     \
                                    PMAPTRAIN_SOURCE) {                                                    \
    reduce_column_parts<Reducer>(parts, x, count, ColumnOrder{rows, columns, group}, PMAPTRAIN_SOURCE_OF); \
  }
#define PMAPTRAIN_COLUMNS(Reducer, symbol, To)                                                                       \
  extern "C" __global__ void symbol(To* out, const Computed<To>* parts, i64 count, i64 rows, i64 columns, i64 group, \
                                    i64 outers) {                                                                    \
    reduce_columns<Reducer>(out, parts, count, ColumnOrder{rows, columns, group}, outers);                           \
  }
#define PMAPTRAIN_SHORT_COLUMNS(Reducer, symbol, To, T)                                                    \
  extern "C" __global__ void symbol(To* out, const T* x, i64 count, i64 wide_rows, i64 columns, i64 group, \
                                    PMAPTRAIN_SOURCE) {                                                    \
    reduce_short_columns<Reducer>(out, x, count, wide_rows, columns, group, PMAPTRAIN_SOURCE_OF);          \
  }
#define PMAPTRAIN_SUM_ROW_PARTS(name, T) PMAPTRAIN_ROW_PARTS(SumReducer, name##_##T, T)
#define PMAPTRAIN_SUM_ROWS(name, T) PMAPTRAIN_ROWS(SumReducer, name##_##T, T, T)
#define PMAPTRAIN_SUM_SHORT_ROWS(name, T) PMAPTRAIN_SHORT_ROWS(SumReducer, name##_##T, T, T)
#define PMAPTRAIN_SUM_COLUMN_PARTS(name, T) PMAPTRAIN_COLUMN_PARTS(SumReducer, name##_##T, T)
#define PMAPTRAIN_SUM_COLUMNS(name, T) PMAPTRAIN_COLUMNS(SumReducer, name##_##T, T)
#define PMAPTRAIN_SUM_SHORT_COLUMNS(name, T) PMAPTRAIN_SHORT_COLUMNS(SumReducer, name##_##T, T, T)
#define PMAPTRAIN_MAX_ROW_PARTS(name, T) PMAPTRAIN_ROW_PARTS(MaxReducer, name##_##T, T)
#define PMAPTRAIN_MAX_ROWS(name, T) PMAPTRAIN_ROWS(MaxReducer, name##_##T, T, T)
#define PMAPTRAIN_MAX_SHORT_ROWS(name, T) PMAPTRAIN_SHORT_ROWS(MaxReducer, name##_##T, T, T)
#define PMAPTRAIN_MAX_COLUMN_PARTS(name, T) PMAPTRAIN_COLUMN_PARTS(MaxReducer, name##_##T, T)
#define PMAPTRAIN_MAX_COLUMNS(name, T) PMAPTRAIN_COLUMNS(MaxReducer, name##_##T, T)
#define PMAPTRAIN_MAX_SHORT_COLUMNS(name, T) PMAPTRAIN_SHORT_COLUMNS(MaxReducer, name##_##T, T, T)
PMAPTRAIN_NUMBERS(PMAPTRAIN_SUM_ROW_PARTS, sum_row_parts)
PMAPTRAIN_NUMBERS(PMAPTRAIN_SUM_ROWS, sum_rows)
PMAPTRAIN_ROWS(SumReducer, sum_rows_bf16_to_f32, float, bf16)
PMAPTRAIN_NUMBERS(PMAPTRAIN_SUM_SHORT_ROWS, sum_short_rows)
PMAPTRAIN_SHORT_ROWS(SumReducer, sum_short_rows_bf16_to_f32, float, bf16)
PMAPTRAIN_NUMBERS(PMAPTRAIN_SUM_COLUMN_PARTS, sum_column_parts)
PMAPTRAIN_NUMBERS(PMAPTRAIN_SUM_COLUMNS, sum_columns)
PMAPTRAIN_NUMBERS(PMAPTRAIN_SUM_SHORT_COLUMNS, sum_short_columns)
PMAPTRAIN_SHORT_COLUMNS(SumReducer, sum_short_columns_bf16_to_f32, float, bf16)
PMAPTRAIN_NUMBERS(PMAPTRAIN_MAX_ROW_PARTS, max_row_parts)
PMAPTRAIN_NUMBERS(PMAPTRAIN_MAX_ROWS, max_rows)
PMAPTRAIN_NUMBERS(PMAPTRAIN_MAX_SHORT_ROWS, max_short_rows)
PMAPTRAIN_NUMBERS(PMAPTRAIN_MAX_COLUMN_PARTS, max_column_parts)
PMAPTRAIN_NUMBERS(PMAPTRAIN_MAX_COLUMNS, max_columns)
PMAPTRAIN_NUMBERS(PMAPTRAIN_MAX_SHORT_COLUMNS, max_short_columns)
#undef PMAPTRAIN_SUM_ROW_PARTS
#undef PMAPTRAIN_SUM_ROWS
#undef PMAPTRAIN_SUM_SHORT_ROWS
#undef PMAPTRAIN_SUM_COLUMN_PARTS
#undef PMAPTRAIN_SUM_COLUMNS
#undef PMAPTRAIN_SUM_SHORT_COLUMNS
#undef PMAPTRAIN_MAX_ROW_PARTS
#undef PMAPTRAIN_MAX_ROWS
#undef PMAPTRAIN_MAX_SHORT_ROWS
#undef PMAPTRAIN_MAX_COLUMN_PARTS
#undef PMAPTRAIN_MAX_COLUMNS
#undef PMAPTRAIN_MAX_SHORT_COLUMNS
#undef PMAPTRAIN_ROW_PARTS
#undef PMAPTRAIN_ROWS
#undef PMAPTRAIN_SHORT_ROWS
#undef PMAPTRAIN_COLUMN_PARTS
#undef PMAPTRAIN_COLUMNS
#undef PMAPTRAIN_SHORT_COLUMNS
#undef PMAPTRAIN_SOURCE
#undef PMAPTRAIN_SOURCE_OF

}  // namespace pmaptrain::ops::device
