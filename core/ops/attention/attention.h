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

// q [B,T,H,D], k and v [B,S,K,D], of one floating type -> out [B,T,H,D] of this type, and lse [B,T,H], f32 (f64 for
// f64). H is a multiple of K: head h of q reads head h / (H/K) of k and v. With `causal`, S is T, and query i sees the
// keys 0 to i.
//
// The score of a query and a key is q·k / √D, lse is the logarithm of the sum of the exponentials of a query's scores,
// and out = Σ exp(score - lse) v. A NaN in q, in k or in v reaches every query that sees it. With `causal`, a value
// that is not finite may also reach the few queries before its position that a kernel computes together with it.
struct Attention {
  static constexpr std::string_view name = "attention";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;
  static constexpr bool cpu_takes_bf16 = true;

  bool causal = false;

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  RowRule row_rule(std::span<const Type>, std::span<const Type>) const { return {RowRule::Kind::keeps}; }
  void attributes(AttributeVisitor& visitor) { visitor.field("causal", causal); }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  // A kernel of ours: the library has no attention, and its products would keep all scores in memory.
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
};

// q, k, v, out, lse, dout and optionally dlse -> dq, dk, dv. Probabilities are computed again from q, k and lse.
struct AttentionGrad {
  static constexpr std::string_view name = "attention_grad";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;
  static constexpr bool cpu_takes_bf16 = true;
  static constexpr NoDerivative derivative{"second derivatives of attention are not supported"};

  bool causal = false;

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  RowRule row_rule(std::span<const Type>, std::span<const Type>) const { return {RowRule::Kind::keeps}; }
  void attributes(AttributeVisitor& visitor) { visitor.field("causal", causal); }
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
  // The keys that a query sees are those before this one.
  std::int64_t end_of(std::int64_t query, bool causal) const { return causal ? query + 1 : keys; }
};

}  // namespace pmaptrain::ops
