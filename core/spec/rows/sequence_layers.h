// The rows of the layers of sequences. A choice needs the rows of all its alternatives, so layers.cpp includes them.
#pragma once

#include "core/spec/rows/layer_keys.h"
#include "core/spec/rows/row.h"

namespace pmaptrain::spec {

inline auto row(Tag<Embedding>) {
  return alternative<Embedding>(
      {.path = "embedding",
       .meaning = "A row of a table for each token: integers of the data become features along a new last dimension. "
                  "Parameter: embedding (num_embeddings, features).",
       .example = "- {name: tokens, embedding: {num_embeddings: 256, features: 128}}"},
      option(&Embedding::num_embeddings,
             {.path = "num_embeddings",
              .need = Need::required,
              .low = 1,
              .high = 2147483647,
              .meaning = "The number of rows: tokens are 0 to num_embeddings - 1. Bytes have 256.",
              .example = "num_embeddings: 256"}),
      option(&Embedding::features, {.path = "features",
                                    .need = Need::required,
                                    .low = 1,
                                    .meaning = "Number of features of a token.",
                                    .example = "features: 128"}),
      choice(&Embedding::embedding_init, embedding_init("normal of stddev 1 / sqrt(features)")));
}

inline auto row(Tag<Attend>) {
  return alternative<Attend>(
      {.path = "attend",
       .meaning = "The product with the transposed table of an embedding layer: a logit for each of its tokens (tied "
                  "output). It has no parameters of its own.",
       .example = "- attend: {embedding: tokens}"},
      option(&Attend::embedding, {.path = "embedding",
                                  .need = Need::required,
                                  .meaning = "The path of the embedding layer.",
                                  .example = "embedding: tokens"}));
}

inline auto row(Tag<PositionEmbedding>) {
  return alternative<PositionEmbedding>(
      {.path = "position_embedding",
       .meaning = "Adds a learned row to each position of a sequence (T, C). Parameter: embedding (length, C).",
       .example = "- position_embedding: {length: 128}"},
      option(&PositionEmbedding::length, {.path = "length",
                                          .need = Need::required,
                                          .low = 1,
                                          .meaning = "The most positions that a sequence may have.",
                                          .example = "length: 128"}),
      choice(&PositionEmbedding::embedding_init, embedding_init("normal of stddev 0.02")));
}

inline auto row(Tag<Rotary>) {
  return keys_of<Rotary>(option(&Rotary::base, {.path = "base",
                                                .low = 1,
                                                .high = unbounded,
                                                .meaning = "Pair i of D / 2 turns by position / base^(2 i / D).",
                                                .example = "base: 500000.0"}));
}

// A map, or none.
inline Option<Attention> rotary_option() {
  Option<Attention> made = section(
      &Attention::rotary,
      {.path = "rotary",
       .words = {"none"},
       .meaning = "Rotary position embedding: turns pairs of a query's and a key's features by their position. The "
                  "pairs are features i and i + D / 2 of a head (halves, as in GPT-NeoX).",
       .example = "rotary: {base: 10000.0}",
       .fallback_text = "none"});
  made.store = [](const Node& value, Attention& out) {
    if (value.is(Node::Kind::map)) Section<Rotary>::store(value, out.rotary.emplace());
  };
  return made;
}

inline auto row(Tag<Attention>) {
  return alternative<Attention>(
      {.path = "attention",
       .meaning = "Multi-head self-attention over the positions of a sequence (T, C): softmax(Q K^T / sqrt(D)) V for "
                  "each head, and a product over all heads. Parameters: query.kernel (C, heads, D), key.kernel and "
                  "value.kernel (C, kv_heads, D), out.kernel (heads, D, C), and a bias of each.",
       .example = "- attention: {heads: 4, causal: true}"},
      option(&Attention::heads, {.path = "heads",
                                 .need = Need::required,
                                 .low = 1,
                                 .high = 65536,
                                 .meaning = "The number of heads.",
                                 .example = "heads: 4"}),
      option(&Attention::kv_heads, {.path = "kv_heads",
                                    .low = 1,
                                    .high = 65536,
                                    .meaning = "The number of heads of keys and values, which divides heads: groups of "
                                               "heads / kv_heads neighbours share one.",
                                    .example = "kv_heads: 2",
                                    .fallback_text = "heads"}),
      option(&Attention::head_dim, {.path = "head_dim",
                                    .low = 1,
                                    .high = 65536,
                                    .meaning = "D, the number of features of a head.",
                                    .example = "head_dim: 32",
                                    .fallback_text = "the features of its input / heads"}),
      option(&Attention::causal, {.path = "causal",
                                  .meaning = "Whether a position sees only itself and those before it.",
                                  .example = "causal: true"}),
      option(&Attention::dropout,
             {.path = "dropout",
              .high = 1,
              .open_high = true,
              .varies = true,
              .structural = Structural{0.0, "dropout of rate 0 does nothing"},
              .meaning = "In training, the probability that a weight of the attention is set to zero.",
              .example = "dropout: 0.1"}),
      option(&Attention::use_bias, {.path = "use_bias",
                                    .meaning = "Whether queries, keys, values and the output have a bias.",
                                    .example = "use_bias: false"}),
      rotary_option(),
      option(&Attention::qk_norm, {.path = "qk_norm",
                                   .meaning = "Whether queries and keys are normalised over D by a layer norm without "
                                              "bias, before rotary. Parameters: query_ln.scale and key_ln.scale (D).",
                                   .example = "qk_norm: true"}),
      choice(&Attention::kernel_init, kernel_init()), choice(&Attention::bias_init, bias_init()));
}

inline auto row(Tag<Swiglu>) {
  return alternative<Swiglu>(
      {.path = "swiglu",
       .meaning = "(silu(x @ gate) * (x @ up)) @ down, along the last dimension, which keeps its size. Parameters: "
                  "gate.kernel and up.kernel (C, hidden), and down.kernel (hidden, C).",
       .example = "- swiglu: 512"},
      option(&Swiglu::hidden, {.path = "hidden",
                               .need = Need::required,
                               .low = 1,
                               .shorthand = true,
                               .meaning = "Number of hidden features.",
                               .example = "hidden: 512"}),
      choice(&Swiglu::kernel_init, kernel_init()));
}

}  // namespace pmaptrain::spec
