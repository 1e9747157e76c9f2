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

// What is computed of a head: `row` elements of each row, a multiple of 16. From one query to the next it is query_row
// elements, from one key to the next key_row. Where `row` is not `width`, zeros are behind the elements of a row. Rows
// are read and written in groups of attention_rows; what is behind the last query or key may be anything.
struct AttentionHead {
  std::size_t queries, keys, width, row;
  bool causal;
  float scale;
  std::size_t query_row, key_row;
};
inline constexpr std::size_t attention_rows = 8;

// The dropout of a head's weights: of an example, `row` of a stream of random values, in which the element
// first + query * keys + key decides on the weight of a pair.
struct AttentionDropout {
  PhiloxKey key;
  std::uint64_t row;
  std::uint32_t first;
  float rate, scale;
};

// From rows to columns: all blocks of keys in turn from [block,row] to [row,block].
void attention_transpose(const AttentionHead& head, const float* rows, float* columns);

// out and lse (one for each query) from q, from blocks of k as columns, and from v; out is not one of them. `scores`
// has room for a block, with dropout for two. `dropout` may be null.
void attention_of_head(const AttentionHead& head, const AttentionDropout* dropout, const float* q,
                       const float* k_columns, const float* v, float* out, float* lse, float* scores);

// The products dout·out of each row.
void attention_delta(const AttentionHead& head, const float* dout, const float* out, float* delta);

// Of at least one query: dk and dv are written while one is visited. dq and dk are scaled.
struct AttentionGradients {
  const float *q, *dout, *k, *k_columns, *v_columns, *lse, *delta;
  float *dq, *dk, *dv;
  float* scores;  // room for two blocks, with dropout for three
  // Of the heads that share k and v, whether others were before this one: then dk and dv are added to. And whether it
  // is the last one: then dk is scaled.
  bool adds, ends;
};
void attention_gradients_of_head(const AttentionHead& head, const AttentionDropout* dropout,
                                 const AttentionGradients& arrays);

}  // namespace pmaptrain::ops

#endif  // PMAPTRAIN_REFERENCE_KERNELS
