// Scaled dot-product attention of several heads, and its gradient. Memory is linear in the number of positions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// Of the operands of dropout all but `rows` are the same for all examples.
constexpr RowRule keeps_rows_beside_dropout(std::size_t first) {
  return {RowRule::Kind::keeps, first == 0 ? 0U : 0b11101U << first};
}

// q [B,T,H,D], k and v [B,S,K,D], of one floating type -> out [B,T,H,D] of this type, and lse [B,T,H], f32 (f64 for
// f64). H is a multiple of K: head h of q reads head h / (H/K) of k and v. With `causal`, S is T, and query i sees the
// keys 0 to i.
//
// The score of a query and a key is q·k / √D, lse is the logarithm of the sum of the exponentials of a query's scores,
// and out = Σ weight v, where weight = exp(score - lse). With dropout there are four operands more: key u32[2], rows
// i64[B], rate f32[] and scale [], of the type of lse. A weight is then multiplied by `scale` where the element of
// random_uniform[H,T,S] of key and rows is at least `rate`, and by 0 elsewhere. A NaN in q, in k or in v reaches every
// query that sees it. With `causal`, a value that is not finite may also reach the queries before its position, up to
// 255, that a kernel computes together with it.
struct Attention {
  static constexpr std::string_view name = "attention";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;
  static constexpr bool cpu_takes_bf16 = true;

  bool causal = false;
  // Whether the operands of dropout end with an offset, i32[] or i64[], of the elements of random_uniform. Where an
  // axis of the mesh divides the heads of a model, a device whose first head is head h gives it h · T · S, and so draws
  // what one device would draw.
  bool offset = false;

  // Which operand, of so many, is the first of dropout; 0 without dropout.
  constexpr std::size_t dropout_of(std::size_t operands) const { return operands == (offset ? 8U : 7U) ? 3 : 0; }

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  RowRule row_rule(std::span<const Type> operands, std::span<const Type>) const {
    return keeps_rows_beside_dropout(dropout_of(operands.size()));
  }
  void attributes(AttributeVisitor& visitor) {
    visitor.field("causal", causal);
    visitor.flag("offset", offset);
  }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  // A kernel of ours: the library has no attention, and its products would keep all scores in memory.
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
};

// q, k, v, out, lse, dout, optionally dlse, and optionally the operands of dropout -> dq, dk, dv. Weights are computed
// again from q, k and lse, and what dropout did to them from its operands.
struct AttentionGrad {
  static constexpr std::string_view name = "attention_grad";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;
  static constexpr bool cpu_takes_bf16 = true;
  static constexpr NoDerivative derivative{"second derivatives of attention are not supported"};

  bool causal = false;
  bool offset = false;

  constexpr std::size_t dropout_of(std::size_t operands) const {
    const std::size_t of_dropout = offset ? 5 : 4;
    return operands >= 6 + of_dropout ? operands - of_dropout : 0;
  }
  constexpr bool has_dlse(std::size_t operands) const { return operands == 7 || dropout_of(operands) == 7; }

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  RowRule row_rule(std::span<const Type> operands, std::span<const Type>) const {
    return keeps_rows_beside_dropout(dropout_of(operands.size()));
  }
  void attributes(AttributeVisitor& visitor) {
    visitor.field("causal", causal);
    visitor.flag("offset", offset);
  }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
};

// The sizes that the shapes of q and k say.
struct AttentionSizes {
  std::int64_t examples, queries, keys, heads, kv_heads, width;

  AttentionSizes(const Shape& q, const Shape& k)
      : examples(q[0]), queries(q[1]), keys(k[1]), heads(q[2]), kv_heads(k[2]), width(q[3]) {}

  std::int64_t group() const { return heads / kv_heads; }  // the heads of q that read one head of k and v
  // The number of the row of a position and a head, in arrays as q and as k.
  std::int64_t query_row(std::int64_t example, std::int64_t query, std::int64_t head) const {
    return (example * queries + query) * heads + head;
  }
  std::int64_t key_row(std::int64_t example, std::int64_t key, std::int64_t kv_head) const {
    return (example * keys + key) * kv_heads + kv_head;
  }
  // The element of a row of random_uniform that decides on the weight of a query for key 0.
  std::int64_t draw_of(std::int64_t head, std::int64_t query) const { return (head * queries + query) * keys; }
  // The keys that a query sees are those before this one.
  std::int64_t end_of(std::int64_t query, bool causal) const { return causal ? query + 1 : keys; }
};

}  // namespace pmaptrain::ops
