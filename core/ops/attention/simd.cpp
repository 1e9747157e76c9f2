// Compiled once for each instruction set; the best one for the CPU is chosen when the program runs.
#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include "core/ops/attention/simd.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/ops/attention/simd.cpp"
// foreach_target.h comes first: it includes this file again for each other instruction set.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "core/kernel/vector_exp-inl.h"
#include "core/kernel/vector_math.h"
#include "core/kernel/vector_random.h"
#include "core/kernel/vector_tiles-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pmaptrain::ops {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t block = attention_block;
using pmaptrain::HWY_NAMESPACE::columns_together, pmaptrain::HWY_NAMESPACE::rows_together;
using pmaptrain::HWY_NAMESPACE::Floats, pmaptrain::HWY_NAMESPACE::Vector, pmaptrain::HWY_NAMESPACE::lanes;
using pmaptrain::HWY_NAMESPACE::multiply_block, pmaptrain::HWY_NAMESPACE::up_to;
static_assert(attention_rows == rows_together);
constexpr float infinity = std::numeric_limits<float>::infinity();

// A block of queries and a block of keys. Where the causal mask crosses it, a group of rows stops at the last key that
// one of its queries sees.
struct Pair {
  std::size_t rows, keys;
  bool crossed;

  // The keys that a query sees, and those that a query of the group that begins at `row` sees.
  std::size_t seen_by(std::size_t query) const { return crossed ? std::min(keys, query + 1) : keys; }
  std::size_t seen_from(std::size_t row) const { return seen_by(row + rows_together - 1); }

  // Calls f(first row, number of rows, keys) for all rows, in as few parts as there can be.
  template <class F>
  HWY_INLINE void for_each_part(const F& f) const {
    const std::size_t all = up_to(rows, rows_together), step = crossed ? rows_together : all;
    for (std::size_t row = 0; row < all; row += step) f(row, step, seen_from(row));
  }

  // scores [block,block] = a b, up to a multiple of columns_together. a has rows of queries, and b keys as columns.
  HWY_INLINE void multiply(const AttentionHead& head, const float* a, const float* b, float* scores) const {
    for_each_part([&](std::size_t row, std::size_t count, std::size_t seen) HWY_ATTR {
      multiply_block(count, up_to(seen, columns_together), head.width, {a + row * head.query_row, head.query_row, 1}, b,
                     block, scores + row * block, block, false);
    });
  }

  // y = x [block,block] b, or y + x b. y has rows of queries, and b of keys.
  HWY_INLINE void weigh(const AttentionHead& head, const float* x, const float* b, float* y, bool add) const {
    for_each_part([&](std::size_t row, std::size_t count, std::size_t seen) HWY_ATTR {
      multiply_block(count, head.row, seen, {x + row * block, block, 1}, b, head.key_row, y + row * head.query_row,
                     head.query_row, add);
    });
  }

  // y = the transpose of x [block,block] times b, or y + that. y has rows of keys, and b of queries.
  HWY_INLINE void weigh_transposed(const AttentionHead& head, const float* x, const float* b, float* y,
                                   bool add) const {
    const std::size_t all = up_to(keys, rows_together), step = crossed ? rows_together : all;
    for (std::size_t key = 0; key < all; key += step) {
      const std::size_t first = crossed ? key : 0;  // where the mask crosses the block, it has as many queries as keys
      multiply_block(step, head.row, rows - first, {x + first * block + key, 1, block}, b + first * head.query_row,
                     head.query_row, y + key * head.key_row, head.key_row, add);
    }
  }
};

Pair pair_of(const AttentionHead& head, std::size_t query, std::size_t key) {
  return {std::min(block, head.queries - query), std::min(block, head.keys - key), head.causal && query == key};
}

// The lanes from `at` on that are below n.
HWY_INLINE auto below(std::size_t n, std::size_t at) { return hn::FirstN(Floats(), n > at ? n - at : 0); }

// exp(score * scale - shift). The product is rounded, as the largest score is: of large scores, an exact product would
// differ from the rounded largest one by more than 1.
HWY_INLINE Vector weight_of(Vector score, Vector scale, Vector shift) {
  return pmaptrain::HWY_NAMESPACE::SafeExp{}(Floats(), hn::Sub(hn::Mul(score, scale), shift));
}

// A sum in 16 parts. To add them, the second half is added to the first until one part is left.
struct PartialSums {
  static constexpr std::size_t vectors = columns_together / lanes;
  Vector parts[vectors];

  HWY_INLINE PartialSums() {
    for (Vector& part : parts) part = hn::Zero(Floats());
  }
};

float total_of(float* parts) {
  for (std::size_t half = columns_together / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) parts[i] += parts[i + half];
  }
  return parts[0];
}

// factors [block,block] = what dropout multiplies the weights of a pair of blocks by: scale, or 0. The pair begins at
// `query` and `key`. A row has factors for a multiple of columns_together, more than a query sees.
void find_factors(const AttentionHead& head, const AttentionDropout& dropout, const Pair& pair, std::size_t query,
                  std::size_t key, float* factors) {
  const Floats d;
  const hn::RebindToSigned<Floats> integers;
  std::uint32_t low[block], high[block], draws[block], words[block], unused[block];
  std::fill_n(low, block, static_cast<std::uint32_t>(dropout.row));
  std::fill_n(high, block, static_cast<std::uint32_t>(dropout.row >> 32));
  const Vector rate = hn::Set(d, dropout.rate), scale = hn::Set(d, dropout.scale);
  for (std::size_t i = 0; i < pair.rows; ++i, factors += block) {
    const std::size_t count = up_to(pair.seen_by(i), columns_together);
    const auto first = dropout.first + static_cast<std::uint32_t>((query + i) * head.keys + key);
    for (std::size_t j = 0; j < count; ++j) draws[j] = first + static_cast<std::uint32_t>(j);
    vector_philox(dropout.key, count, low, high, draws, words, unused);
    for (std::size_t j = 0; j < count; j += lanes) {
      // As uniform_from_bits has it.
      const auto bits = hn::ShiftRight<8>(hn::LoadU(hn::RebindToUnsigned<Floats>(), words + j));
      const Vector uniform = hn::Mul(hn::ConvertTo(d, hn::BitCast(integers, bits)), hn::Set(d, 0x1.0p-24F));
      hn::StoreU(hn::IfThenElseZero(hn::Ge(uniform, rate), scale), d, factors + j);
    }
  }
}

// The first n weights, up to a multiple of columns_together, times their factors.
HWY_INLINE void multiply_weights(std::size_t n, const float* factors, float* weights) {
  const Floats d;
  for (std::size_t j = 0; j < n; j += lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, weights + j), hn::LoadU(d, factors + j)), d, weights + j);
  }
}

// What is known of a block of queries after some blocks of keys.
struct Running {
  HWY_ALIGN float most[block];                    // the largest score
  HWY_ALIGN float factor[block];                  // by which to multiply what was summed before the last block of keys
  HWY_ALIGN float sums[block][columns_together];  // of exp(score - most), in parts

  Running() {
    std::fill_n(most, block, -infinity);
    std::fill_n(sums[0], block * columns_together, 0.0F);
  }
};

// The largest of the first n elements. It may miss a NaN.
HWY_INLINE float largest_of(std::size_t n, const float* scores) {
  const Floats d;
  Vector most = hn::Set(d, -infinity);
  for (std::size_t j = 0; j < up_to(n, columns_together); j += lanes) {
    Vector score = hn::LoadU(d, scores + j);
    if (j + lanes > n) score = hn::IfThenElse(below(n, j), score, most);
    most = hn::Max(most, score);
  }
  return hn::GetLane(hn::MaxOfLanes(d, most));
}

// Replaces the first n scores of query i by weights, and those behind them by zeros, up to a multiple of
// columns_together.
HWY_INLINE void weigh_scores(std::size_t n, float scale, std::size_t i, float* scores, Running& running) {
  const Floats d;
  // Not -inf, where all scores of this block and those before have overflowed: their weights are 0, not NaN, because a
  // later block may have others.
  const Vector by = hn::Set(d, scale);
  const Vector most = hn::Set(d, std::max(running.most[i], std::numeric_limits<float>::lowest()));
  PartialSums sums;
  for (std::size_t j = 0; j < up_to(n, columns_together); j += columns_together) {
    for (std::size_t v = 0; v < PartialSums::vectors; ++v) {
      const std::size_t at = j + v * lanes;
      Vector weight = weight_of(hn::LoadU(d, scores + at), by, most);
      if (at + lanes > n) weight = hn::IfThenElseZero(below(n, at), weight);
      sums.parts[v] = hn::Add(sums.parts[v], weight);
      hn::StoreU(weight, d, scores + at);
    }
  }
  const Vector factor = hn::Set(d, running.factor[i]);
  for (std::size_t v = 0; v < PartialSums::vectors; ++v) {
    float* const at = running.sums[i] + v * lanes;
    hn::Store(hn::MulAdd(hn::Load(d, at), factor, sums.parts[v]), d, at);
  }
}

// Replaces all scores by weights. What is beyond the keys that a query sees, but not beyond those that its group of
// rows sees, becomes 0.
void weigh_block(const Pair& pair, float scale, float* scores, Running& running) {
  const Floats d;
  HWY_ALIGN float largest[block];
  std::fill_n(largest, block, -infinity);
  for (std::size_t i = 0; i < pair.rows; ++i) largest[i] = largest_of(pair.seen_by(i), scores + i * block);
  for (std::size_t i = 0; i < block; i += lanes) {
    const Vector before = hn::Load(d, running.most + i);
    const Vector most = hn::Max(before, hn::Mul(hn::Load(d, largest + i), hn::Set(d, scale)));
    const Vector factor = pmaptrain::HWY_NAMESPACE::SafeExp{}(d, hn::Sub(before, most));
    hn::Store(most, d, running.most + i);
    hn::Store(hn::IfThenElse(hn::Eq(before, most), hn::Set(d, 1.0F), factor), d, running.factor + i);
  }
  for (std::size_t i = 0; i < pair.rows; ++i) {
    const std::size_t seen = pair.seen_by(i), end = pair.seen_from(i / rows_together * rows_together);
    weigh_scores(seen, scale, i, scores + i * block, running);
    for (std::size_t j = up_to(seen, columns_together); j < end; ++j) scores[i * block + j] = 0;
  }
}

// x *= factor
void scale_row(std::size_t row, float factor, float* x) {
  const Floats d;
  for (std::size_t i = 0; i < row; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, factor)), d, x + i);
}

void scale_rows(std::size_t row, std::size_t rows, float factor, float* x, std::size_t x_row) {
  for (std::size_t i = 0; i < rows; ++i) scale_row(row, factor, x + i * x_row);
}

void of_head(const AttentionHead& head, const AttentionDropout* dropout, const float* q, const float* k_columns,
             const float* v, float* out, float* lse, float* scores) {
  float* const factors = scores + block * block;  // with dropout only
  for (std::size_t query = 0; query < head.queries; query += block) {
    Running running;
    float* const sums = out + query * head.query_row;
    const std::size_t rows = std::min(block, head.queries - query);
    const std::size_t end = head.causal ? std::min(head.keys, query + block) : head.keys;
    for (std::size_t key = 0; key < end; key += block) {
      const Pair pair = pair_of(head, query, key);
      pair.multiply(head, q + query * head.query_row, k_columns + key * head.row, scores);
      weigh_block(pair, head.scale, scores, running);
      if (dropout != nullptr) {
        find_factors(head, *dropout, pair, query, key, factors);
        for (std::size_t i = 0; i < rows; ++i) {
          multiply_weights(pair.seen_by(i), factors + i * block, scores + i * block);
        }
      }
      for (std::size_t i = 0; i < rows && key > 0; ++i) {
        if (running.factor[i] != 1) scale_row(head.row, running.factor[i], sums + i * head.query_row);
      }
      pair.weigh(head, scores, v + key * head.key_row, sums, key > 0);
    }
    HWY_ALIGN float totals[block], logs[block];
    for (std::size_t i = 0; i < rows; ++i) totals[i] = total_of(running.sums[i]);
    vector_log(rows, totals, logs);
    for (std::size_t i = 0; i < rows; ++i) {
      scale_row(head.row, 1 / totals[i], sums + i * head.query_row);
      // Where all scores have overflowed to -inf, the total is 0.
      lse[query + i] = totals[i] > 0 ? running.most[i] + logs[i] : std::numeric_limits<float>::quiet_NaN();
    }
  }
}

void delta_of_head(const AttentionHead& head, const float* dout, const float* out, float* delta) {
  const Floats d;
  for (std::size_t query = 0; query < head.queries; ++query, dout += head.query_row, out += head.query_row) {
    PartialSums sums;
    for (std::size_t i = 0; i < head.row; i += columns_together) {
      for (std::size_t v = 0; v < PartialSums::vectors; ++v) {
        const std::size_t at = i + v * lanes;
        sums.parts[v] = hn::MulAdd(hn::LoadU(d, dout + at), hn::LoadU(d, out + at), sums.parts[v]);
      }
    }
    HWY_ALIGN float parts[columns_together];
    for (std::size_t v = 0; v < PartialSums::vectors; ++v) hn::Store(sums.parts[v], d, parts + v * lanes);
    delta[query] = total_of(parts);
  }
}

// Replaces the first n scores of a query by weights, and the products dout·v by p (dout·v - delta), which is the
// gradient of the scores, where p is exp(score - lse). With dropout, weights and dout·v are multiplied by `factors`.
// What is behind them becomes 0, up to a multiple of columns_together.
template <bool dropout>
HWY_INLINE void differentiate_scores(std::size_t n, float scale, float lse, float delta, const float* factors,
                                     float* scores, float* products) {
  const Floats d;
  for (std::size_t j = 0; j < up_to(n, columns_together); j += lanes) {
    Vector p = weight_of(hn::LoadU(d, scores + j), hn::Set(d, scale), hn::Set(d, lse));
    Vector product = hn::LoadU(d, products + j);
    if constexpr (dropout) product = hn::Mul(product, hn::LoadU(d, factors + j));
    Vector gradient = hn::Mul(p, hn::Sub(product, hn::Set(d, delta)));
    if constexpr (dropout) p = hn::Mul(p, hn::LoadU(d, factors + j));
    if (j + lanes > n) {
      const auto seen = below(n, j);
      p = hn::IfThenElseZero(seen, p);
      gradient = hn::IfThenElseZero(seen, gradient);
    }
    hn::StoreU(p, d, scores + j);
    hn::StoreU(gradient, d, products + j);
  }
}

void gradients_of_head(const AttentionHead& head, const AttentionDropout* dropout, const AttentionGradients& x) {
  float *const scores = x.scores, *const products = scores + block * block, *const factors = products + block * block;
  for (std::size_t key = 0; key < head.keys; key += block) {
    for (std::size_t query = head.causal ? key : 0; query < head.queries; query += block) {
      const Pair pair = pair_of(head, query, key);
      const std::size_t at_query = query * head.query_row, at_key = key * head.key_row;
      pair.multiply(head, x.q + at_query, x.k_columns + key * head.row, scores);
      pair.multiply(head, x.dout + at_query, x.v_columns + key * head.row, products);
      if (dropout != nullptr) find_factors(head, *dropout, pair, query, key, factors);
      for (std::size_t i = 0; i < pair.rows; ++i) {
        const std::size_t seen = pair.seen_by(i), at = i * block;
        const float lse = x.lse[query + i], delta = x.delta[query + i];
        if (dropout == nullptr) {
          differentiate_scores<false>(seen, head.scale, lse, delta, nullptr, scores + at, products + at);
        } else {
          differentiate_scores<true>(seen, head.scale, lse, delta, factors + at, scores + at, products + at);
        }
        const std::size_t first = up_to(seen, columns_together),
                          last = pair.seen_from(i / rows_together * rows_together);
        for (std::size_t j = first; j < last; ++j) scores[at + j] = products[at + j] = 0;
      }
      const bool is_first = query == (head.causal ? key : 0);
      pair.weigh_transposed(head, scores, x.dout + at_query, x.dv + at_key, x.adds || !is_first);
      pair.weigh_transposed(head, products, x.q + at_query, x.dk + at_key, x.adds || !is_first);
      pair.weigh(head, products, x.k + at_key, x.dq + at_query, key > 0);
      if (head.causal ? key == query : key + block >= head.keys) {
        scale_rows(head.row, pair.rows, head.scale, x.dq + at_query, head.query_row);
      }
      if (x.ends && query + block >= head.queries) {
        scale_rows(head.row, pair.keys, head.scale, x.dk + at_key, head.key_row);
      }
    }
  }
}

#if HWY_TARGET == HWY_SCALAR

void transpose_block(std::size_t keys, std::size_t row, const float* rows, std::size_t key_row, float* columns) {
  for (std::size_t j = 0; j < keys; ++j) {
    for (std::size_t i = 0; i < row; ++i) columns[i * block + j] = rows[j * key_row + i];
  }
}

#else

// Transposes squares of four rows and four columns.
void transpose_block(std::size_t keys, std::size_t row, const float* rows, std::size_t key_row, float* columns) {
  const hn::CappedTag<float, 4> d;
  const hn::RepartitionToWide<decltype(d)> pairs;
  for (std::size_t j = 0; j < keys; j += 4) {
    for (std::size_t i = 0; i < row; i += 4) {
      const float* const from = rows + j * key_row + i;
      const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + key_row);
      const auto c = hn::LoadU(d, from + 2 * key_row), e = hn::LoadU(d, from + 3 * key_row);
      const auto low_ab = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
      const auto low_ce = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
      const auto high_ab = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
      const auto high_ce = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
      float* const to = columns + i * block + j;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, low_ab, low_ce)), d, to);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, low_ab, low_ce)), d, to + block);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, high_ab, high_ce)), d, to + 2 * block);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, high_ab, high_ce)), d, to + 3 * block);
    }
  }
}

#endif

void transpose(const AttentionHead& head, const float* rows, float* columns) {
  for (std::size_t key = 0; key < head.keys; key += block) {
    transpose_block(std::min(block, head.keys - key), head.row, rows + key * head.key_row, head.key_row,
                    columns + key * head.row);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pmaptrain::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pmaptrain::ops {

HWY_EXPORT(transpose);
HWY_EXPORT(of_head);
HWY_EXPORT(delta_of_head);
HWY_EXPORT(gradients_of_head);

void attention_transpose(const AttentionHead& head, const float* rows, float* columns) {
  HWY_DYNAMIC_DISPATCH(transpose)(head, rows, columns);
}

void attention_of_head(const AttentionHead& head, const AttentionDropout* dropout, const float* q,
                       const float* k_columns, const float* v, float* out, float* lse, float* scores) {
  HWY_DYNAMIC_DISPATCH(of_head)(head, dropout, q, k_columns, v, out, lse, scores);
}

void attention_delta(const AttentionHead& head, const float* dout, const float* out, float* delta) {
  HWY_DYNAMIC_DISPATCH(delta_of_head)(head, dout, out, delta);
}

void attention_gradients_of_head(const AttentionHead& head, const AttentionDropout* dropout,
                                 const AttentionGradients& arrays) {
  HWY_DYNAMIC_DISPATCH(gradients_of_head)(head, dropout, arrays);
}

}  // namespace pmaptrain::ops
#endif  // HWY_ONCE

#endif  // PMAPTRAIN_REFERENCE_KERNELS
