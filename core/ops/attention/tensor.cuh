// Attention and its gradient in bf16 on tensor cores, for heads of up to 64 or 128 elements. A block of threads
// computes 64 queries of a head (for dk and dv, 64 keys), and each warp 16 of them. Tiles of keys (or queries) pass
// through shared memory, and each score is computed once: the largest score and the sum are kept as tiles come (Milakov
// and Gimelshein 2018; Dao et al. 2022). Weights and gradients of scores are rounded to bf16 before they are
// multiplied; all sums are f32, in an order that depends on shapes alone.
#pragma once

#include "core/ops/attention/arrays.cuh"
#include "core/ops/support/tensor.cuh"

namespace pmaptrain::ops::device {

inline constexpr f32 log2_of_e = 1.44269504F;

// The number of elements from one row of a tile to the next: the lanes of a warp read from different banks.
__device__ constexpr unsigned row_of_tile(unsigned width) { return width + 8; }
#define PMAPTRAIN_TILE(name, rows, width)                       \
  SHARED(Words16, name##_words, (rows)*row_of_tile(width) / 8); \
  bf16* const name = reinterpret_cast<bf16*>(&name##_words[0])

// Fills a tile with rows of a head, whose width is a multiple of 8, and with zeros beside them.
template <unsigned rows, unsigned width>
__device__ void load_rows(bf16* tile, const Rows<bf16>& from, i64 head_width) {
  constexpr unsigned units = width / 8;
  for (unsigned unit = threadIdx.x; unit < rows * units; unit += tensor_threads) {
    const unsigned row = unit / units, column = unit % units * 8;
    const bool inside = row < from.count && column < head_width;
    *reinterpret_cast<Words16*>(tile + row * row_of_tile(width) + column) =
        inside ? *reinterpret_cast<const Words16*>(from.at + row * from.stride + column) : Words16{};
  }
}

// The rows of a block of threads that this lane's warp has, from memory, as the first matrix of products.
template <unsigned steps>
__device__ void load_near(u32 (&near)[steps][4], const Rows<bf16>& from, i64 head_width) {
  UNROLL for (unsigned step = 0; step < steps; ++step) {
    UNROLL for (unsigned w = 0; w < 4; ++w) {
      const i64 row = threadIdx.x / warp_threads * 16 + lane_row() + w % 2 * 8;
      const i64 column = step * 16 + lane_column() + w / 2 * 8;
      const bool inside = row < from.count && column < head_width;
      near[step][w] = inside ? word_at(from.at + row * from.stride + column) : 0;
    }
  }
}

// products = near times the rows of a tile.
template <unsigned steps, unsigned tiles>
__device__ void multiply_by_rows(f32 (&products)[tiles][4], const u32 (&near)[steps][4], const bf16* tile) {
  constexpr unsigned stride = row_of_tile(steps * 16);
  UNROLL for (unsigned n = 0; n < tiles; ++n) { UNROLL for (unsigned e = 0; e < 4; ++e) products[n][e] = 0; }
  UNROLL for (unsigned step = 0; step < steps; ++step) {
    UNROLL for (unsigned n = 0; n < tiles; n += 2) {
      u32 far[4];
      load_columns<false>(far, tile + n * 8 * stride + step * 16, stride);
      multiply_tiles(products[n], near[step], far[0], far[1]);
      multiply_tiles(products[n + 1], near[step], far[2], far[3]);
    }
  }
}

// sums += weights, rounded to bf16, times a tile whose rows they weigh.
template <unsigned width, unsigned tiles>
__device__ void add_weighted_rows(f32 (&sums)[width / 8][4], const f32 (&weights)[tiles][4], const bf16* tile) {
  constexpr unsigned stride = row_of_tile(width);
  UNROLL for (unsigned step = 0; step < tiles / 2; ++step) {
    const f32(&left)[4] = weights[2 * step];
    const f32(&right)[4] = weights[2 * step + 1];
    const u32 near[4] = {pair_of(left[0], left[1]), pair_of(left[2], left[3]), pair_of(right[0], right[1]),
                         pair_of(right[2], right[3])};
    UNROLL for (unsigned n = 0; n < width / 8; n += 2) {
      u32 far[4];
      load_columns<true>(far, tile + step * 16 * stride + n * 8, stride);
      multiply_tiles(sums[n], near, far[0], far[1]);
      multiply_tiles(sums[n + 1], near, far[2], far[3]);
    }
  }
}

// Stores what this lane has of a row of sums, times `factor`: half 0 or 1 of the lane's two rows.
template <unsigned width>
__device__ void store_row(bf16* to, const f32 (&sums)[width / 8][4], unsigned half, f32 factor, i64 head_width) {
  UNROLL for (unsigned n = 0; n < width / 8; ++n) {
    const i64 column = n * 8 + lane_column();
    if (column >= head_width) continue;
    *reinterpret_cast<u32*>(to + column) = pair_of(sums[n][2 * half] * factor, sums[n][2 * half + 1] * factor);
  }
}

// The part of a head that a block of threads has. With `backwards`, the last rows begin first: they see most keys.
struct BlockOfHead {
  i64 example, head, first;

  __device__ BlockOfHead(i64 unit, i64 rows, i64 heads, bool backwards) {
    const i64 blocks = (rows + tensor_rows - 1) / tensor_rows;
    first = (backwards ? blocks - 1 - unit % blocks : unit % blocks) * tensor_rows;
    head = unit / blocks % heads;
    example = unit / blocks / heads;
  }
  // The row, from `first` on, of half 0 or 1 of what this lane holds.
  __device__ static i64 row(unsigned half) { return threadIdx.x / warp_threads * 16 + lane_row() + half * 8; }
};

template <unsigned width>
__device__ void attention_by_tiles(bf16* out, f32* lse, const bf16* q, const bf16* k, const bf16* v, i64 count,
                                   i64 q_examples, i64 k_examples, i64 v_examples, const AttentionArrays& x,
                                   const WeightDropout<f32>& dropout) {
  constexpr unsigned far_keys = 64;
  PMAPTRAIN_TILE(keys, far_keys, width);
  PMAPTRAIN_TILE(values, far_keys, width);
  for_each_block(count, [&](i64 unit) {
    const BlockOfHead block(unit, x.queries, x.heads, x.causal != 0);
    const i64 example = block.example, head = block.head, query = block.first;
    const i64 kv_head = head / (x.heads / x.kv_heads);
    const i64 end = x.causal != 0 ? at_most(x.keys, query + tensor_rows) : x.keys;
    const auto far_rows_of = [&](const bf16* array, i64 examples, i64 key) {
      return Rows<bf16>{array + x.key_row(example % examples, key, kv_head) * x.width, x.kv_heads * x.width,
                        x.keys - key};
    };
    u32 queries[width / 16][4];
    load_near(
        queries,
        Rows<bf16>{q + x.query_row(example % q_examples, query, head) * x.width, x.heads * x.width, x.queries - query},
        x.width);
    // Scores are logarithms to the base 2.
    const f32 scale = static_cast<f32>(x.scale) * log2_of_e, least = -INFINITY;
    f32 sums[width / 8][4] = {}, most[2] = {least, least}, total[2] = {};
    for (i64 key = 0; key < end; key += far_keys) {
      __syncthreads();
      load_rows<far_keys, width>(keys, far_rows_of(k, k_examples, key), x.width);
      load_rows<far_keys, width>(values, far_rows_of(v, v_examples, key), x.width);
      __syncthreads();
      f32 weights[far_keys / 8][4];
      multiply_by_rows(weights, queries, keys);
      UNROLL for (unsigned half = 0; half < 2; ++half) {
        const i64 row = query + BlockOfHead::row(half);
        f32 largest = most[half];
        UNROLL for (unsigned n = 0; n < far_keys / 8; ++n) {
          UNROLL for (unsigned e = 2 * half; e < 2 * half + 2; ++e) {
            const i64 column = key + n * 8 + lane_column() + e % 2;
            weights[n][e] = column < x.keys && x.sees(row, column) ? weights[n][e] * scale : least;
            largest = larger(largest, weights[n][e]);
          }
        }
        largest = largest_of_row(largest);
        const f32 base = largest == least ? 0 : largest;  // where the row has seen no key
        const f32 factor = std::exp2(most[half] - base);
        most[half] = largest;
        total[half] *= factor;
        UNROLL for (unsigned n = 0; n < width / 8; ++n) {
          sums[n][2 * half] *= factor;
          sums[n][2 * half + 1] *= factor;
        }
        UNROLL for (unsigned n = 0; n < far_keys / 8; ++n) {
          UNROLL for (unsigned e = 2 * half; e < 2 * half + 2; ++e) {
            f32& weight = weights[n][e];
            weight = std::exp2(weight - base);
            total[half] += weight;
            if (dropout.is_on()) weight *= dropout.factor(x, example, head, row, key + n * 8 + lane_column() + e % 2);
          }
        }
      }
      add_weighted_rows<width>(sums, weights, values);
    }
    UNROLL for (unsigned half = 0; half < 2; ++half) {
      const i64 row = query + BlockOfHead::row(half);
      const f32 sum = sum_of_row(total[half]);
      if (row >= x.queries) continue;
      const i64 to = x.query_row(example, row, head);
      store_row<width>(out + to * x.width, sums, half, 1 / sum, x.width);
      if (lane_column() == 0) lse[to] = most[half] / log2_of_e + std::log(sum);
    }
  });
}

template <unsigned width>
__device__ void query_gradients_by_tiles(bf16* dq, const GradientOperands<bf16>& from, i64 count,
                                         const AttentionArrays& x) {
  constexpr unsigned far_keys = width > 64 ? 32 : 64;
  PMAPTRAIN_TILE(keys, far_keys, width);
  PMAPTRAIN_TILE(values, far_keys, width);
  for_each_block(count, [&](i64 unit) {
    const BlockOfHead block(unit, x.queries, x.heads, x.causal != 0);
    const i64 example = block.example, head = block.head, query = block.first;
    const i64 kv_head = head / (x.heads / x.kv_heads);
    const i64 end = x.causal != 0 ? at_most(x.keys, query + tensor_rows) : x.keys;
    u32 queries[width / 16][4], douts[width / 16][4];
    load_near(queries, from.queries(x, from.q, from.q_examples, example, query, head), x.width);
    load_near(douts, from.queries(x, from.dout, from.dout_examples, example, query, head), x.width);
    f32 sums[width / 8][4] = {}, lse[2] = {}, delta[2] = {};
    UNROLL for (unsigned half = 0; half < 2; ++half) {
      const i64 row = query + BlockOfHead::row(half);
      if (row >= x.queries) continue;
      lse[half] = from.lse[x.query_row(example % from.lse_examples, row, head)] * log2_of_e;
      delta[half] = from.delta[x.query_row(example, row, head)];
    }
    const f32 scale = static_cast<f32>(x.scale) * log2_of_e;
    for (i64 key = 0; key < end; key += far_keys) {
      __syncthreads();
      load_rows<far_keys, width>(keys, from.keys(x, from.k, from.k_examples, example, key, kv_head), x.width);
      load_rows<far_keys, width>(values, from.keys(x, from.v, from.v_examples, example, key, kv_head), x.width);
      __syncthreads();
      f32 scores[far_keys / 8][4], products[far_keys / 8][4];
      multiply_by_rows(scores, queries, keys);
      multiply_by_rows(products, douts, values);
      UNROLL for (unsigned n = 0; n < far_keys / 8; ++n) {
        UNROLL for (unsigned e = 0; e < 4; ++e) {
          const i64 row = query + BlockOfHead::row(e / 2), column = key + n * 8 + lane_column() + e % 2;
          const bool seen = row < x.queries && column < x.keys && x.sees(row, column);
          const f32 p = seen ? std::exp2(scores[n][e] * scale - lse[e / 2]) : 0;
          if (seen && from.dropout.is_on()) products[n][e] *= from.dropout.factor(x, example, head, row, column);
          scores[n][e] = seen ? p * (products[n][e] - delta[e / 2]) : 0;
        }
      }
      add_weighted_rows<width>(sums, scores, keys);
    }
    UNROLL for (unsigned half = 0; half < 2; ++half) {
      const i64 row = query + BlockOfHead::row(half);
      if (row >= x.queries) continue;
      store_row<width>(dq + x.query_row(example, row, head) * x.width, sums, half, static_cast<f32>(x.scale), x.width);
    }
  });
}

template <unsigned width>
__device__ void key_gradients_by_tiles(bf16* dk, bf16* dv, const GradientOperands<bf16>& from, i64 count,
                                       const AttentionArrays& x) {
  constexpr unsigned far_queries = width > 64 ? 16 : 64;
  PMAPTRAIN_TILE(queries, far_queries, width);
  PMAPTRAIN_TILE(douts, far_queries, width);
  SHARED(f32, lse, far_queries);
  SHARED(f32, delta, far_queries);
  for_each_block(count, [&](i64 unit) {
    const BlockOfHead block(unit, x.keys, x.kv_heads, false);
    const i64 example = block.example, kv_head = block.head, key = block.first, group = x.heads / x.kv_heads;
    u32 keys[width / 16][4], values[width / 16][4];
    load_near(keys, from.keys(x, from.k, from.k_examples, example, key, kv_head), x.width);
    load_near(values, from.keys(x, from.v, from.v_examples, example, key, kv_head), x.width);
    f32 k_sums[width / 8][4] = {}, v_sums[width / 8][4] = {};
    const f32 scale = static_cast<f32>(x.scale) * log2_of_e;
    for (i64 head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      for (i64 query = x.causal != 0 ? key : 0; query < x.queries; query += far_queries) {
        __syncthreads();
        load_rows<far_queries, width>(queries, from.queries(x, from.q, from.q_examples, example, query, head), x.width);
        load_rows<far_queries, width>(douts, from.queries(x, from.dout, from.dout_examples, example, query, head),
                                      x.width);
        const i64 mine = query + threadIdx.x;
        if (threadIdx.x < far_queries) {
          const bool inside = mine < x.queries;
          lse[threadIdx.x] = inside ? from.lse[x.query_row(example % from.lse_examples, mine, head)] * log2_of_e : 0;
          delta[threadIdx.x] = inside ? from.delta[x.query_row(example, mine, head)] : 0;
        }
        __syncthreads();
        f32 weights[far_queries / 8][4], gradients[far_queries / 8][4];
        multiply_by_rows(weights, keys, queries);
        multiply_by_rows(gradients, values, douts);
        UNROLL for (unsigned n = 0; n < far_queries / 8; ++n) {
          UNROLL for (unsigned e = 0; e < 4; ++e) {
            const i64 column = n * 8 + lane_column() + e % 2;
            const i64 row = key + BlockOfHead::row(e / 2), of = query + column;
            const bool seen = of < x.queries && row < x.keys && x.sees(of, row);
            const f32 p = seen ? std::exp2(weights[n][e] * scale - lse[column]) : 0;
            const f32 factor = seen && from.dropout.is_on() ? from.dropout.factor(x, example, head, of, row) : 1;
            weights[n][e] = p * factor;
            gradients[n][e] = seen ? p * (gradients[n][e] * factor - delta[column]) : 0;
          }
        }
        add_weighted_rows<width>(v_sums, weights, douts);
        add_weighted_rows<width>(k_sums, gradients, queries);
      }
    }
    UNROLL for (unsigned half = 0; half < 2; ++half) {
      const i64 row = key + BlockOfHead::row(half);
      if (row >= x.keys) continue;
      const i64 to = x.key_row(example, row, kv_head) * x.width;
      store_row<width>(dk + to, k_sums, half, static_cast<f32>(x.scale), x.width);
      store_row<width>(dv + to, v_sums, half, 1, x.width);
    }
  });
}

// Suffixes say the largest width of a head.
#define PMAPTRAIN_KERNELS(suffix, largest_width)                                                                    \
  extern "C" __global__ void __launch_bounds__(tensor_threads) attention_tiles_##suffix(                            \
      bf16* out, f32* lse, const bf16* q, const bf16* k, const bf16* v, i64 count, i64 q_examples, i64 k_examples,  \
      i64 v_examples, PMAPTRAIN_ATTENTION_SIZES, PMAPTRAIN_ATTENTION_DROPOUT(bf16)) {                               \
    attention_by_tiles<largest_width>(out, lse, q, k, v, count, q_examples, k_examples, v_examples,                 \
                                      PMAPTRAIN_ATTENTION_SIZES_OF, PMAPTRAIN_ATTENTION_DROPOUT_OF(bf16));          \
  }                                                                                                                 \
  extern "C" __global__ void __launch_bounds__(tensor_threads) attention_grad_q_tiles_##suffix(                     \
      bf16* dq, PMAPTRAIN_ATTENTION_OPERANDS(bf16), PMAPTRAIN_ATTENTION_SIZES, PMAPTRAIN_ATTENTION_DROPOUT(bf16)) { \
    query_gradients_by_tiles<largest_width>(dq, PMAPTRAIN_ATTENTION_OPERANDS_OF(bf16), count,                       \
                                            PMAPTRAIN_ATTENTION_SIZES_OF);                                          \
  }                                                                                                                 \
  extern "C" __global__ void __launch_bounds__(tensor_threads)                                                      \
      attention_grad_kv_tiles_##suffix(bf16* dk, bf16* dv, PMAPTRAIN_ATTENTION_OPERANDS(bf16),                      \
                                       PMAPTRAIN_ATTENTION_SIZES, PMAPTRAIN_ATTENTION_DROPOUT(bf16)) {              \
    key_gradients_by_tiles<largest_width>(dk, dv, PMAPTRAIN_ATTENTION_OPERANDS_OF(bf16), count,                     \
                                          PMAPTRAIN_ATTENTION_SIZES_OF);                                            \
  }
PMAPTRAIN_KERNELS(w64, 64)
PMAPTRAIN_KERNELS(w128, 128)
#undef PMAPTRAIN_KERNELS
#undef PMAPTRAIN_TILE

}  // namespace pmaptrain::ops::device
