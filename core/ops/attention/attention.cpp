#include "core/ops/attention/attention.h"

#include <fmt/format.h>

#include "core/graph/builder.h"
#include "core/ops/conv/window.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

Type lse_type(const Type& q) {
  return {q.dtype == DType::f64 ? DType::f64 : DType::f32, {q.shape[0], q.shape[1], q.shape[2]}, {}};
}

// Checks the shapes of the operands q, k and v.
void expect_heads(std::string_view op, std::span<const Type> operands, bool causal) {
  const Type &q = operands[0], &k = operands[1], &v = operands[2];
  for (const auto& [what, x] : {std::pair("q", &q), {"k", &k}, {"v", &v}}) {
    if (x->shape.size() == 4) continue;
    throw TypeError(6, fmt::format("{}: {} is {}", op, what, describe(*x)),
                    "it has four dimensions: examples, positions, heads, and the elements of a head");
  }
  if (k.shape != v.shape) {
    throw TypeError(6, fmt::format("{}: k is {} and v is {}", op, describe(k), describe(v)),
                    "both have the same positions, heads and elements");
  }
  if (q.shape[0] != k.shape[0] || q.shape[3] != k.shape[3]) {
    throw TypeError(6, fmt::format("{}: q is {} and k is {}", op, describe(q), describe(k)),
                    "both have the same examples (dimension 0) and elements of a head (dimension 3)");
  }
  const AttentionSizes sizes(q.shape, k.shape);
  if (sizes.keys == 0 || sizes.kv_heads == 0 || sizes.width == 0) {
    throw TypeError(6, fmt::format("{}: k is {}", op, describe(k)), "it has at least one position, head and element");
  }
  if (sizes.heads % sizes.kv_heads != 0) {
    throw TypeError(6, fmt::format("{}: q has {} heads, and k and v have {}", op, sizes.heads, sizes.kv_heads),
                    "q has as many heads as k and v, or a multiple of them");
  }
  if (causal && sizes.queries != sizes.keys) {
    throw TypeError(6, fmt::format("{}: causal=true with {} queries and {} keys", op, sizes.queries, sizes.keys),
                    "a causal mask needs as many keys as queries; write causal=false for other keys");
  }
}

// The pairs of a query and a key that it sees, times the elements of a head.
double products(const AttentionSizes& sizes, bool causal) {
  const auto queries = static_cast<double>(sizes.queries), keys = static_cast<double>(sizes.keys);
  const double pairs = causal ? queries * (queries + 1) / 2 : queries * keys;
  return pairs * static_cast<double>(sizes.examples) * static_cast<double>(sizes.heads) *
         static_cast<double>(sizes.width);
}

}  // namespace

std::vector<Type> Attention::infer(const InferContext& context) const {
  static constexpr std::string_view names[] = {"q", "k", "v"};
  expect_floating(name, context.operands, names);
  expect_heads(name, context.operands, causal);
  const Type& q = context.operands[0];
  return {{q.dtype, q.shape, {}}, lse_type(q)};
}

std::vector<Type> AttentionGrad::infer(const InferContext& context) const {
  const std::span<const Type> operands = context.operands;
  if (operands.size() != 6 && operands.size() != 7) {
    throw TypeError(6, fmt::format("{} of {} operands", name, operands.size()),
                    fmt::format("{} takes q, k, v, out, lse, dout and optionally dlse", name));
  }
  static constexpr std::string_view names[] = {"q", "k", "v", "out", "dout"};
  const Type floating[] = {operands[0], operands[1], operands[2], operands[3], operands[5]};
  expect_floating(name, floating, names);
  expect_heads(name, operands, causal);
  const Type& q = operands[0];
  const Type lse = lse_type(q);
  const auto expect = [&](std::string_view what, std::size_t i, const Type& type) {
    if (operands[i].dtype == type.dtype && operands[i].shape == type.shape) return;
    throw TypeError(6, fmt::format("{}: q is {}, but {} is {}", name, describe(q), what, describe(operands[i])),
                    fmt::format("{} is {}, as the op attention gives it", what, describe(type)));
  };
  expect("out", 3, q);
  expect("lse", 4, lse);
  expect("dout", 5, q);
  if (operands.size() == 7) expect("dlse", 6, lse);
  const Type& k = operands[1];
  return {{q.dtype, q.shape, {}}, {k.dtype, k.shape, {}}, {k.dtype, k.shape, {}}};
}

// Two products: scores, and their sums of v.
Cost Attention::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results, 4 * products({operands[0].shape, operands[1].shape}, causal));
}

// Five products: scores again, the gradients of the probabilities, and dq, dk and dv.
Cost AttentionGrad::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results, 10 * products({operands[0].shape, operands[1].shape}, causal));
}

Cotangents Attention::derivative(VjpContext& context) const {
  Builder& b = context.b;
  const Type out = b.type(context.results[0]);
  std::vector<Value> operands(context.operands.begin(), context.operands.end());
  operands.insert(operands.end(), context.results.begin(), context.results.end());
  operands.push_back(context.cotangents[0] ? *context.cotangents[0] : b.constant(out.dtype, 0, out.shape));
  if (context.cotangents[1]) operands.push_back(*context.cotangents[1]);
  const std::vector<Value> gradients = b.emit_all(AttentionGrad{causal}, operands);
  Cotangents result(3);
  for (std::size_t i = 0; i < 3; ++i) {
    if (context.needed[i]) result[i] = gradients[i];
  }
  return result;
}

}  // namespace pmaptrain::ops
