// Attention of one token to itself and to the tokens before it, whose keys and values are in memory.
#pragma once

#include <cmath>
#include <limits>

#include "core/equations/arithmetic.h"
#include "core/layers/node.h"
#include "core/ops/all.h"

namespace pmaptrain::layers {

// x [B, S, K, D] -> [B, K, S, D], as the cache has keys and values: then a product reads those of a head in place.
inline Value by_heads(Builder& b, Value x) { return b.emit(ops::Transpose{{0, 2, 1, 3}}, {x}); }

// The keys and values of one sequence, [1, K, S, D], with those of one token, k and v [1, 1, K, D], at `position`,
// i32[1]. Where nothing else reads them, a backend writes only the rows of this token.
inline KeysAndValues with_token(Builder& b, const KeysAndValues& before, Value k, Value v, Value position) {
  const Shape shape = b.type(before.keys).shape;
  const std::int64_t heads = shape[1], positions = shape[2], size = shape[3];
  const Value first = mul(b, b.emit(ops::Iota{DType::i32, {heads}, 0}, {}), static_cast<double>(positions));
  const Value rows =
      add(b, first, b.emit(ops::Broadcast{{heads}, {}}, {b.emit(ops::Reshape{{}}, {position})}));  // one of each head
  const auto with_rows_of = [&](Value x, Value token) {
    x = b.emit(ops::Reshape{{heads * positions, size}}, {x});
    token = b.emit(ops::Reshape{{heads, size}}, {token});
    return b.emit(ops::Reshape{shape}, {b.emit(ops::Scatter{}, {x, rows, token})});
  };
  return {with_rows_of(before.keys, k), with_rows_of(before.values, v)};
}

// softmax(Q Kᵀ / √D) V of each head for the token at `position`, i32[1]: q [1, 1, H, D] -> [1, 1, H, D]. Query head h
// reads the keys and values of head h / (H / K), so the queries of a group are the rows of one product. Scores and
// weights are computed in `storage`, the type of parameters.
inline Value cached_attention(Builder& b, Value q, const KeysAndValues& cache, Value position, DType storage) {
  const Type type = b.type(q);
  const Shape shape = b.type(cache.keys).shape;
  const std::int64_t heads = shape[1], positions = shape[2], size = shape[3], group = type.shape[2] / heads;
  q = b.emit(ops::Reshape{{1, heads, group, size}}, {q});
  ops::BatchMatmul product{false, true};
  if (type.dtype == DType::bf16) product.preferred_element_type = DType::f32;
  Value scores = cast(b, b.emit(product, {q, cache.keys}), storage);
  scores = mul(b, scores, 1.0 / std::sqrt(static_cast<double>(size)));
  const Value query = b.emit(ops::Broadcast{{positions}, {}}, {b.emit(ops::Reshape{{}}, {position})});
  const Value sees = b.emit(ops::Ge{}, {query, b.emit(ops::Iota{DType::i32, {positions}, 0}, {})});
  const Value each = b.emit(ops::Broadcast{{1, heads, group, positions}, {3}}, {sees});
  scores = select(b, each, scores, scalar_like(b, scores, std::numeric_limits<float>::lowest()));
  const Value weights = cast(b, softmax(b, scores), type.dtype);
  return b.emit(ops::Reshape{type.shape}, {b.emit(ops::BatchMatmul{}, {weights, cache.values})});
}

}  // namespace pmaptrain::layers
