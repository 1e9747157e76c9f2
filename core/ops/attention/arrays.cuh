// What the kernels of attention read: arrays, dropout, and the parameters of kernels.
#pragma once

#include <cmath>

#include "core/ops/random/stream.cuh"
#include "core/ops/support/device.cuh"

namespace pmaptrain::ops::device {

// q and its like are [examples,queries,heads,width], k and v are [examples,keys,kv_heads,width]. An operand that all
// devices share has only the examples of one.
struct AttentionArrays {
  i64 examples, queries, keys, heads, kv_heads, width, causal;
  f64 scale;

  __device__ i64 query_row(i64 example, i64 query, i64 head) const {
    return (example * queries + query) * heads + head;
  }
  __device__ i64 key_row(i64 example, i64 key, i64 kv_head) const {
    return (example * keys + key) * kv_heads + kv_head;
  }
  __device__ bool sees(i64 query, i64 key) const { return causal == 0 || key <= query; }
};

// Dropout of weights. Each device has its own rate, scale and offset, whose elements have `offset_bytes`; without an
// offset these are 0. Without dropout, `local` of the stream is 0.
template <class C>
struct WeightDropout {
  Stream stream;
  const f32* rate;
  const C* scale;
  i64 rate_stride, scale_stride;
  const void* offsets;
  i64 offset_bytes, offset_stride;

  __device__ bool is_on() const { return stream.local > 0; }
  // What the weight of a query and a key is multiplied by.
  __device__ C factor(const AttentionArrays& x, i64 example, i64 head, i64 query, i64 key) const {
    if (!is_on()) return C{1};
    const i64 device = example / stream.local;
    i64 draw = (head * x.queries + query) * x.keys + key;
    if (offset_bytes > 0) draw += index_at(offsets, offset_bytes == 8, device * offset_stride);
    const Words words = stream.words(example, draw);
    return uniform_from_bits(words.first) >= rate[device * rate_stride] ? scale[device * scale_stride] : C{};
  }
};

// Some rows of a head: the first, the distance to the next, and their number, which may be 0 or less.
template <class T>
struct Rows {
  const T* at;
  i64 stride, count;
};

// What the kernels of both gradients read: an array, and the number of its examples.
template <class T>
struct GradientOperands {
  const T *q, *k, *v, *dout;
  const Computed<T>*lse, *delta;  // delta has the examples of all devices
  i64 q_examples, k_examples, v_examples, lse_examples, dout_examples;
  WeightDropout<Computed<T>> dropout;

  __device__ Rows<T> queries(const AttentionArrays& x, const T* array, i64 examples, i64 example, i64 query,
                             i64 head) const {
    return {array + x.query_row(example % examples, query, head) * x.width, x.heads * x.width, x.queries - query};
  }
  __device__ Rows<T> keys(const AttentionArrays& x, const T* array, i64 examples, i64 example, i64 key,
                          i64 kv_head) const {
    return {array + x.key_row(example % examples, key, kv_head) * x.width, x.kv_heads * x.width, x.keys - key};
  }
  // The probability of a key for a query from their product, and the gradient of the score from the one of dout and v.
  __device__ Computed<T> probability(const AttentionArrays& x, i64 example, i64 query, i64 head,
                                     Computed<T> product) const {
    return std::exp(product * static_cast<Computed<T>>(x.scale) -
                    lse[x.query_row(example % lse_examples, query, head)]);
  }
  __device__ Computed<T> score_gradient(const AttentionArrays& x, i64 example, i64 query, i64 head, Computed<T> p,
                                        Computed<T> product) const {
    return p * (product - delta[x.query_row(example, query, head)]);
  }
};

__device__ inline i64 at_most(i64 a, i64 b) { return a < b ? a : b; }

#define PMAPTRAIN_ATTENTION_SIZES \
  i64 examples, i64 queries, i64 keys, i64 heads, i64 kv_heads, i64 width, i64 causal, f64 scale
#define PMAPTRAIN_ATTENTION_SIZES_OF \
  AttentionArrays { examples, queries, keys, heads, kv_heads, width, causal, scale }
#define PMAPTRAIN_ATTENTION_DROPOUT(T)                                                                          \
  const u32 *keys_of_draws, const i64 *rows_of_draws, const f32 *rate, const Computed<T>*drop_scale, i64 local, \
      i64 key_stride, i64 row_stride, i64 rate_stride, i64 scale_stride, const void *offsets, i64 offset_bytes, \
      i64 offset_stride
#define PMAPTRAIN_ATTENTION_DROPOUT_OF(T)                                                                       \
  WeightDropout<Computed<T>> {                                                                                  \
    {keys_of_draws, rows_of_draws, local, key_stride, row_stride}, rate, drop_scale, rate_stride, scale_stride, \
        offsets, offset_bytes, offset_stride                                                                    \
  }
#define PMAPTRAIN_ATTENTION_OPERANDS(T)                                                                         \
  const T *q, const T *k, const T *v, const Computed<T>*lse, const T *dout, const Computed<T>*delta, i64 count, \
      i64 q_examples, i64 k_examples, i64 v_examples, i64 lse_examples, i64 dout_examples
#define PMAPTRAIN_ATTENTION_OPERANDS_OF(T)                                                      \
  GradientOperands<T> {                                                                         \
    q, k, v, dout, lse, delta, q_examples, k_examples, v_examples, lse_examples, dout_examples, \
        PMAPTRAIN_ATTENTION_DROPOUT_OF(T)                                                       \
  }

}  // namespace pmaptrain::ops::device
