// The GPU kernels of the ops, by name: PMAPTRAIN_GPU_KERNELS(X) expands to X(base, suffix) for each kernel base_suffix.
// The code is in the folders of the ops (gpu.cuh), and core/ops/gpu_kernels.cuh includes all of it. Most kernels exist
// for each element type.
#pragma once

namespace pmaptrain::ops {
inline constexpr unsigned gpu_threads = 256;  // threads per block, unless stated otherwise
// Of the kernels on tensor cores: threads per block, and the rows that a block has.
inline constexpr unsigned tensor_threads = 128;
inline constexpr unsigned tensor_rows = 64;
inline constexpr unsigned sort_tile = 2048;  // keys that a block of threads sorts together
}  // namespace pmaptrain::ops

// X(name, T) for each numeric element type T, and for each type in which sums can be computed (which excludes bf16).
#define PMAPTRAIN_ARITHMETIC(X, name) X(name, f32) X(name, f64) X(name, i32) X(name, i64) X(name, u8) X(name, u32)
#define PMAPTRAIN_NUMBERS(X, name) X(name, bf16) PMAPTRAIN_ARITHMETIC(X, name)
#define PMAPTRAIN_FLOATING(X, name) X(name, bf16) X(name, f32) X(name, f64)
// For each size of an element in bytes, for kernels that do not depend on the type.
#define PMAPTRAIN_WORDS(X, name) X(name, b1) X(name, b2) X(name, b4) X(name, b8)

// For each largest width of a head.
#define PMAPTRAIN_WIDTHS(X, name) X(name, w64) X(name, w128)

#define PMAPTRAIN_GPU_KERNELS(X)              \
  PMAPTRAIN_WORDS(X, fill)                    \
  PMAPTRAIN_WORDS(X, copy)                    \
  PMAPTRAIN_NUMBERS(X, iota)                  \
  PMAPTRAIN_NUMBERS(X, product)               \
  X(product, bf16_to_f32)                     \
  PMAPTRAIN_NUMBERS(X, sum_row_parts)         \
  PMAPTRAIN_NUMBERS(X, sum_rows)              \
  X(sum_rows, bf16_to_f32)                    \
  PMAPTRAIN_NUMBERS(X, sum_short_rows)        \
  X(sum_short_rows, bf16_to_f32)              \
  PMAPTRAIN_NUMBERS(X, sum_column_parts)      \
  PMAPTRAIN_NUMBERS(X, sum_columns)           \
  PMAPTRAIN_NUMBERS(X, sum_short_columns)     \
  X(sum_short_columns, bf16_to_f32)           \
  PMAPTRAIN_NUMBERS(X, max_row_parts)         \
  PMAPTRAIN_NUMBERS(X, max_rows)              \
  PMAPTRAIN_NUMBERS(X, max_short_rows)        \
  PMAPTRAIN_NUMBERS(X, max_column_parts)      \
  PMAPTRAIN_NUMBERS(X, max_columns)           \
  PMAPTRAIN_NUMBERS(X, max_short_columns)     \
  PMAPTRAIN_NUMBERS(X, argmax)                \
  PMAPTRAIN_FLOATING(X, norms)                \
  PMAPTRAIN_FLOATING(X, segment_sum)          \
  PMAPTRAIN_NUMBERS(X, cumsum)                \
  PMAPTRAIN_WORDS(X, gather)                  \
  PMAPTRAIN_WORDS(X, scatter)                 \
  PMAPTRAIN_WORDS(X, scatter_base)            \
  PMAPTRAIN_NUMBERS(X, scatter_add)           \
  PMAPTRAIN_NUMBERS(X, scatter_add_sorted)    \
  X(sort_begin, u32)                          \
  X(sort_count, u32)                          \
  X(sort_places, u32)                         \
  X(sort_move, u32)                           \
  X(first_occurrence, i32)                    \
  X(first_occurrence, i64)                    \
  PMAPTRAIN_NUMBERS(X, one_hot)               \
  PMAPTRAIN_NUMBERS(X, top_k)                 \
  X(random, uniform)                          \
  X(random, uniform_part)                     \
  X(random, normal)                           \
  X(random, normal_part)                      \
  X(random, bernoulli)                        \
  X(random, bernoulli_part)                   \
  X(random, permutation)                      \
  PMAPTRAIN_FLOATING(X, max_pool)             \
  PMAPTRAIN_FLOATING(X, max_pool_grad)        \
  PMAPTRAIN_FLOATING(X, avg_pool)             \
  PMAPTRAIN_FLOATING(X, avg_pool_grad)        \
  PMAPTRAIN_FLOATING(X, lstm)                 \
  PMAPTRAIN_FLOATING(X, lstm_grad)            \
  PMAPTRAIN_FLOATING(X, gru)                  \
  PMAPTRAIN_FLOATING(X, gru_grad)             \
  PMAPTRAIN_FLOATING(X, attention)            \
  PMAPTRAIN_FLOATING(X, attention_delta)      \
  PMAPTRAIN_FLOATING(X, attention_grad_q)     \
  PMAPTRAIN_FLOATING(X, attention_grad_kv)    \
  PMAPTRAIN_WIDTHS(X, attention_tiles)        \
  PMAPTRAIN_WIDTHS(X, attention_grad_q_tiles) \
  PMAPTRAIN_WIDTHS(X, attention_grad_kv_tiles)
