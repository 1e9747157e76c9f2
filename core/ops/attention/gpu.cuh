// Attention and its gradient in tiles: a block of threads for 16 queries of a head (for dk and dv, 16 keys). Scores of
// a tile are in shared memory and are computed again wherever they are needed. Sums are added in the reference's order.
#pragma once

#include <cmath>

#include "core/ops/attention/arrays.cuh"
#include "core/ops/matmul/inner.h"

namespace pmaptrain::ops::device {

// The rows of a block, the rows of the other side that are processed together, and elements of a head: those that a
// tile of a product has, and those that a thread block sums in registers.
inline constexpr i64 near_rows = 16, far_rows = 32, tile_width = 32, sum_width = 64;
inline constexpr i64 tile_row = tile_width + 1;  // so that the rows of a tile begin in different banks
inline constexpr i64 row_threads = gpu_threads / near_rows;
inline constexpr i64 scores_of_thread = near_rows * far_rows / gpu_threads;
inline constexpr i64 sums_of_thread = sum_width / row_threads;

template <class T>
__device__ void load_tile(Computed<T>* tile, i64 row_size, i64 rows, const Rows<T>& from, i64 first, i64 columns,
                          i64 width) {
  for (i64 e = threadIdx.x; e < rows * columns; e += gpu_threads) {
    const i64 row = e / columns, column = e % columns;
    const bool inside = row < from.count && first + column < width;
    tile[row * row_size + column] =
        inside ? static_cast<Computed<T>>(from.at[row * from.stride + first + column]) : Computed<T>{};
  }
}

// products[n] = the product of the near row threadIdx.x / 32 + 8 n with the far row threadIdx.x % 32. All threads of a
// block call this.
template <class T>
__device__ void multiply_rows(Computed<T> (&products)[scores_of_thread], const Rows<T>& near, const Rows<T>& far,
                              i64 width, Computed<T>* near_tile, Computed<T>* far_tile) {
  for (i64 n = 0; n < scores_of_thread; ++n) products[n] = 0;
  for (i64 first = 0; first < width; first += tile_width) {
    __syncthreads();
    load_tile(near_tile, tile_row, near_rows, near, first, tile_width, width);
    load_tile(far_tile, tile_row, far_rows, far, first, tile_width, width);
    __syncthreads();
    const i64 columns = width - first < tile_width ? width - first : tile_width;
    for (i64 n = 0; n < scores_of_thread; ++n) {
      const Computed<T>* const a = near_tile + (threadIdx.x / far_rows + n * (gpu_threads / far_rows)) * tile_row;
      const Computed<T>* const b = far_tile + threadIdx.x % far_rows * tile_row;
      for (i64 c = 0; c < columns; ++c) products[n] = multiply_add(products[n], a[c], b[c]);
    }
  }
}

// sums[n] += the sum over far rows of weights[near row, far row] times the element of a far row that this thread has.
template <class C>
__device__ void weigh_rows(C (&sums)[sums_of_thread], const C* weights, i64 begin, i64 end, const C* tile) {
  const i64 row = threadIdx.x / row_threads, column = threadIdx.x % row_threads;
  for (i64 far = begin; far < end; ++far) {
    const C weight = weights[row * far_rows + far];
    for (i64 n = 0; n < sums_of_thread; ++n) {
      sums[n] = multiply_add(sums[n], weight, tile[far * sum_width + column + n * row_threads]);
    }
  }
}

template <class T>
__device__ void attention_of_block(T* out, Computed<T>* lse, const T* q, const T* k, const T* v, i64 count,
                                   i64 q_examples, i64 k_examples, i64 v_examples, const AttentionArrays& x,
                                   const WeightDropout<Computed<T>>& dropout) {
  using C = Computed<T>;
  SHARED(C, near_tile, near_rows * tile_row);
  SHARED(C, far_tile, far_rows * tile_row);
  SHARED(C, weights, near_rows * far_rows);
  SHARED(C, values, far_rows * sum_width);
  SHARED(C, largest, near_rows);
  const i64 blocks = (x.queries + near_rows - 1) / near_rows;
  for_each_block(count, [&](i64 unit) {
    const i64 query = unit % blocks * near_rows, head = unit / blocks % x.heads, example = unit / blocks / x.heads;
    const i64 kv_head = head / (x.heads / x.kv_heads);
    const i64 end = x.causal != 0 ? at_most(x.keys, query + near_rows) : x.keys;
    const Rows<T> queries{q + x.query_row(example % q_examples, query, head) * x.width, x.heads * x.width,
                          x.queries - query};
    const auto keys = [&](const T* array, i64 examples, i64 key) {
      return Rows<T>{array + x.key_row(example % examples, key, kv_head) * x.width, x.kv_heads * x.width, x.keys - key};
    };
    const C scale = static_cast<C>(x.scale), least = -static_cast<C>(INFINITY);
    // Leaves scores in `weights`, after multiply_rows has waited for all who read older ones.
    const auto score = [&](i64 key) {
      C products[scores_of_thread];
      multiply_rows(products, queries, keys(k, k_examples, key), x.width, near_tile, far_tile);
      for (i64 n = 0; n < scores_of_thread; ++n) {
        const i64 row = threadIdx.x / far_rows + n * (gpu_threads / far_rows), far = threadIdx.x % far_rows;
        const bool seen = key + far < x.keys && x.sees(query + row, key + far);
        weights[row * far_rows + far] = seen ? products[n] * scale : least;
      }
      __syncthreads();
    };

    C most = least;  // of the row threadIdx.x, for the first threads
    for (i64 key = 0; key < end; key += far_rows) {
      score(key);
      if (threadIdx.x >= near_rows) continue;
      for (i64 far = 0; far < far_rows; ++far) most = larger(most, weights[threadIdx.x * far_rows + far]);
    }
    if (threadIdx.x < near_rows) largest[threadIdx.x] = most;
    __syncthreads();

    const i64 row = threadIdx.x / row_threads;
    for (i64 first = 0; first < x.width; first += sum_width) {
      C sums[sums_of_thread] = {}, sum{};
      for (i64 key = 0; key < end; key += far_rows) {
        score(key);
        const i64 seen = x.causal != 0 ? at_most(x.keys, query + row + 1) - key : x.keys - key;
        for (i64 e = threadIdx.x; e < near_rows * far_rows; e += gpu_threads) {
          weights[e] = std::exp(weights[e] - largest[e / far_rows]);
        }
        load_tile(values, sum_width, far_rows, keys(v, v_examples, key), first, sum_width, x.width);
        __syncthreads();
        for (i64 far = 0; far < at_most(seen, far_rows); ++far) sum += weights[row * far_rows + far];
        if (dropout.is_on()) {
          __syncthreads();
          for (i64 e = threadIdx.x; e < near_rows * far_rows; e += gpu_threads) {
            weights[e] *= dropout.factor(x, example, head, query + e / far_rows, key + e % far_rows);
          }
          __syncthreads();
        }
        weigh_rows(sums, weights, 0, at_most(seen, far_rows), values);
        __syncthreads();
      }
      if (query + row >= x.queries) continue;
      const i64 to = x.query_row(example, query + row, head);
      for (i64 n = 0; n < sums_of_thread; ++n) {
        const i64 column = first + threadIdx.x % row_threads + n * row_threads;
        if (column < x.width) out[to * x.width + column] = static_cast<T>(sums[n] / sum);
      }
      if (first == 0 && threadIdx.x % row_threads == 0) lse[to] = largest[row] + std::log(sum);
    }
    __syncthreads();  // until all have read what the next block overwrites
  });
}

// delta = dout·out - dlse, of each row.
template <class T>
__device__ void attention_deltas(Computed<T>* delta, const T* out, const T* dout, const Computed<T>* dlse, i64 count,
                                 i64 out_rows, i64 dout_rows, i64 dlse_rows, i64 width) {
  for_each_index(count, [&](i64 row) {
    const T *const a = dout + row % dout_rows * width, *const b = out + row % out_rows * width;
    Computed<T> sum{};
    for (i64 i = 0; i < width; ++i) {
      sum = multiply_add(sum, static_cast<Computed<T>>(a[i]), static_cast<Computed<T>>(b[i]));
    }
    delta[row] = dlse_rows > 0 ? sum - dlse[row % dlse_rows] : sum;
  });
}

// Stores a thread's sums, times `scale`.
template <class T>
__device__ void store_sums(T* to, const Computed<T> (&sums)[sums_of_thread], Computed<T> scale, i64 first, i64 width) {
  for (i64 n = 0; n < sums_of_thread; ++n) {
    const i64 column = first + threadIdx.x % row_threads + n * row_threads;
    if (column < width) to[column] = static_cast<T>(sums[n] * scale);
  }
}

template <class T>
__device__ void attention_query_gradients(T* dq, const GradientOperands<T>& from, i64 count, const AttentionArrays& x) {
  using C = Computed<T>;
  SHARED(C, near_tile, near_rows * tile_row);
  SHARED(C, far_tile, far_rows * tile_row);
  SHARED(C, gradients, near_rows * far_rows);
  SHARED(C, values, far_rows * sum_width);
  const i64 blocks = (x.queries + near_rows - 1) / near_rows;
  for_each_block(count, [&](i64 unit) {
    const i64 query = unit % blocks * near_rows, head = unit / blocks % x.heads, example = unit / blocks / x.heads;
    const i64 kv_head = head / (x.heads / x.kv_heads), row = threadIdx.x / row_threads;
    const i64 end = x.causal != 0 ? at_most(x.keys, query + near_rows) : x.keys;
    const Rows<T> q = from.queries(x, from.q, from.q_examples, example, query, head);
    const Rows<T> dout = from.queries(x, from.dout, from.dout_examples, example, query, head);
    for (i64 first = 0; first < x.width; first += sum_width) {
      C sums[sums_of_thread] = {};
      for (i64 key = 0; key < end; key += far_rows) {
        const Rows<T> keys = from.keys(x, from.k, from.k_examples, example, key, kv_head);
        C scores[scores_of_thread], products[scores_of_thread];
        multiply_rows(scores, q, keys, x.width, near_tile, far_tile);
        multiply_rows(products, dout, from.keys(x, from.v, from.v_examples, example, key, kv_head), x.width, near_tile,
                      far_tile);
        for (i64 n = 0; n < scores_of_thread; ++n) {
          const i64 near = threadIdx.x / far_rows + n * (gpu_threads / far_rows), far = threadIdx.x % far_rows;
          if (query + near >= x.queries || key + far >= x.keys || !x.sees(query + near, key + far)) continue;
          const C p = from.probability(x, example, query + near, head, scores[n]);
          const C factor = from.dropout.factor(x, example, head, query + near, key + far);
          gradients[near * far_rows + far] =
              from.score_gradient(x, example, query + near, head, p, products[n] * factor);
        }
        load_tile(values, sum_width, far_rows, keys, first, sum_width, x.width);
        __syncthreads();
        const i64 last = x.causal != 0 ? query + row + 1 : x.keys;
        weigh_rows(sums, gradients, 0, query + row < x.queries ? at_most(last - key, far_rows) : 0, values);
        __syncthreads();
      }
      if (query + row >= x.queries) continue;
      store_sums(dq + x.query_row(example, query + row, head) * x.width, sums, static_cast<C>(x.scale), first, x.width);
    }
  });
}

// A block of threads for 16 keys of a head of k and v.
template <class T>
__device__ void attention_key_gradients(T* dk, T* dv, const GradientOperands<T>& from, i64 count,
                                        const AttentionArrays& x) {
  using C = Computed<T>;
  SHARED(C, near_tile, near_rows * tile_row);
  SHARED(C, far_tile, far_rows * tile_row);
  SHARED(C, probabilities, near_rows * far_rows);
  SHARED(C, gradients, near_rows * far_rows);
  SHARED(C, values, far_rows * sum_width);
  const i64 blocks = (x.keys + near_rows - 1) / near_rows, group = x.heads / x.kv_heads;
  for_each_block(count, [&](i64 unit) {
    const i64 key = unit % blocks * near_rows, kv_head = unit / blocks % x.kv_heads;
    const i64 example = unit / blocks / x.kv_heads, row = threadIdx.x / row_threads;
    const Rows<T> k = from.keys(x, from.k, from.k_examples, example, key, kv_head);
    const Rows<T> v = from.keys(x, from.v, from.v_examples, example, key, kv_head);
    for (i64 first = 0; first < x.width; first += sum_width) {
      C k_sums[sums_of_thread] = {}, v_sums[sums_of_thread] = {};
      for (i64 head = kv_head * group; head < (kv_head + 1) * group; ++head) {
        for (i64 query = x.causal != 0 ? key / far_rows * far_rows : 0; query < x.queries; query += far_rows) {
          const Rows<T> queries = from.queries(x, from.q, from.q_examples, example, query, head);
          const Rows<T> dout = from.queries(x, from.dout, from.dout_examples, example, query, head);
          C scores[scores_of_thread], products[scores_of_thread];
          multiply_rows(scores, k, queries, x.width, near_tile, far_tile);
          multiply_rows(products, v, dout, x.width, near_tile, far_tile);
          for (i64 n = 0; n < scores_of_thread; ++n) {
            const i64 near = threadIdx.x / far_rows + n * (gpu_threads / far_rows), far = threadIdx.x % far_rows;
            if (query + far >= x.queries || key + near >= x.keys || !x.sees(query + far, key + near)) continue;
            const C p = from.probability(x, example, query + far, head, scores[n]);
            const C factor = from.dropout.factor(x, example, head, query + far, key + near);
            probabilities[near * far_rows + far] = p * factor;
            gradients[near * far_rows + far] =
                from.score_gradient(x, example, query + far, head, p, products[n] * factor);
          }
          load_tile(values, sum_width, far_rows, queries, first, sum_width, x.width);
          __syncthreads();
          // The first query that sees the key, and the last one.
          const i64 begin = x.causal != 0 && key + row > query ? key + row - query : 0;
          const i64 end = key + row < x.keys ? at_most(x.queries - query, far_rows) : 0;
          weigh_rows(k_sums, gradients, begin, end, values);
          __syncthreads();
          load_tile(values, sum_width, far_rows, dout, first, sum_width, x.width);
          __syncthreads();
          weigh_rows(v_sums, probabilities, begin, end, values);
          __syncthreads();
        }
      }
      if (key + row >= x.keys) continue;
      const i64 to = x.key_row(example, key + row, kv_head) * x.width;
      store_sums(dk + to, k_sums, static_cast<C>(x.scale), first, x.width);
      store_sums(dv + to, v_sums, C{1}, first, x.width);
    }
  });
}

#define PMAPTRAIN_KERNEL(name, T)                                                                                  \
  extern "C" __global__ void name##_##T(T* out, Computed<T>* lse, const T* q, const T* k, const T* v, i64 count,   \
                                        i64 q_examples, i64 k_examples, i64 v_examples, PMAPTRAIN_ATTENTION_SIZES, \
                                        PMAPTRAIN_ATTENTION_DROPOUT(T)) {                                          \
    attention_of_block(out, lse, q, k, v, count, q_examples, k_examples, v_examples, PMAPTRAIN_ATTENTION_SIZES_OF, \
                       PMAPTRAIN_ATTENTION_DROPOUT_OF(T));                                                         \
  }
PMAPTRAIN_FLOATING(PMAPTRAIN_KERNEL, attention)
#undef PMAPTRAIN_KERNEL
#define PMAPTRAIN_KERNEL(name, T)                                                                                 \
  extern "C" __global__ void name##_##T(Computed<T>* delta, const T* out, const T* dout, const Computed<T>* dlse, \
                                        i64 count, i64 out_rows, i64 dout_rows, i64 dlse_rows, i64 width) {       \
    attention_deltas(delta, out, dout, dlse, count, out_rows, dout_rows, dlse_rows, width);                       \
  }
PMAPTRAIN_FLOATING(PMAPTRAIN_KERNEL, attention_delta)
#undef PMAPTRAIN_KERNEL
#define PMAPTRAIN_KERNEL(name, T)                                                                           \
  extern "C" __global__ void name##_##T(T* dq, PMAPTRAIN_ATTENTION_OPERANDS(T), PMAPTRAIN_ATTENTION_SIZES,  \
                                        PMAPTRAIN_ATTENTION_DROPOUT(T)) {                                   \
    attention_query_gradients(dq, PMAPTRAIN_ATTENTION_OPERANDS_OF(T), count, PMAPTRAIN_ATTENTION_SIZES_OF); \
  }
PMAPTRAIN_FLOATING(PMAPTRAIN_KERNEL, attention_grad_q)
#undef PMAPTRAIN_KERNEL
#define PMAPTRAIN_KERNEL(name, T)                                                                                 \
  extern "C" __global__ void name##_##T(T* dk, T* dv, PMAPTRAIN_ATTENTION_OPERANDS(T), PMAPTRAIN_ATTENTION_SIZES, \
                                        PMAPTRAIN_ATTENTION_DROPOUT(T)) {                                         \
    attention_key_gradients(dk, dv, PMAPTRAIN_ATTENTION_OPERANDS_OF(T), count, PMAPTRAIN_ATTENTION_SIZES_OF);     \
  }
PMAPTRAIN_FLOATING(PMAPTRAIN_KERNEL, attention_grad_kv)
#undef PMAPTRAIN_KERNEL

}  // namespace pmaptrain::ops::device
