// One head of attention and of its gradient, with the widest vector instructions of the CPU. Queries and keys are
// processed in blocks, so that scores need no more memory than a block has. The sizes of blocks, and with them the
// order of sums, do not depend on the CPU; its instructions do: some round a product before they add it, some do not.
#pragma once

#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include <cstddef>
#include <cstdint>

#include "core/base/philox.h"

namespace pmaptrain::ops {

// The most queries, and keys, of a block.
inline constexpr std::size_t attention_block = 64;

// Rows of f32 in scratch memory: `row` elements from one to the next, a multiple of 16, with zeros behind the `width`
// elements of a head. The number of rows is a multiple of attention_block; what is behind the last query or key may be
// anything.
struct AttentionHead {
  std::size_t queries, keys, width, row;
  bool causal;
  float scale;
};

// The dropout of a head's weights: of an example, `row` of a stream of random values, in which the element
// first + query * keys + key decides on the weight of a pair.
struct AttentionDropout {
  PhiloxKey key;
  std::uint64_t row;
  std::uint32_t first;
  float rate, scale;
};

// From rows of keys to columns: from [block,row] to [row,block], of the first `keys` keys.
void attention_transpose(std::size_t keys, std::size_t row, const float* rows, float* columns);

// out and lse (one for each query) from q, from blocks of k as columns, and from v. `scores` has room for a block, with
// dropout for two. `dropout` may be null.
void attention_of_head(const AttentionHead& head, const AttentionDropout* dropout, const float* q,
                       const float* k_columns, const float* v, float* out, float* lse, float* scores);

// The products dout·out of each row.
void attention_delta(const AttentionHead& head, const float* dout, const float* out, float* delta);

struct AttentionGradients {
  const float *q, *dout, *k, *k_columns, *v_columns, *lse, *delta;
  float *dq, *dk, *dv;  // added to
  float* scores;        // room for two blocks, with dropout for three
};
// dq and dk are not yet scaled.
void attention_gradients_of_head(const AttentionHead& head, const AttentionDropout* dropout,
                                 const AttentionGradients& arrays);

}  // namespace pmaptrain::ops

#endif  // PMAPTRAIN_REFERENCE_KERNELS
