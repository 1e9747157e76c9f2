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

// Checks the operands of dropout, which begin at `first`.
void expect_dropout(std::string_view op, std::span<const Type> operands, std::size_t first, bool offset) {
  const Type& q = operands[0];
  const AttentionSizes sizes(q.shape, operands[1].shape);
  const auto expect = [&](std::string_view what, std::size_t i, const Type& type) {
    if (operands[i].dtype == type.dtype && operands[i].shape == type.shape) return;
    throw TypeError(6, fmt::format("{}: {} of its dropout is {}", op, what, describe(operands[i])),
                    fmt::format("with q {} it is {}", describe(q), describe(type)));
  };
  expect("the key", first, {DType::u32, {2}, {}});
  expect("rows", first + 1, {DType::i64, {sizes.examples}, {}});
  expect("the rate", first + 2, {DType::f32, {}, {}});
  expect("the scale", first + 3, {lse_type(q).dtype, {}, {}});
  if (offset && operands[first + 4].dtype != DType::i64) expect("the offset", first + 4, {DType::i32, {}, {}});
  if (offset) expect("the offset", first + 4, {operands[first + 4].dtype, {}, {}});
  if (sizes.draw_of(sizes.heads, 0) < std::int64_t{1} << 32) return;
  throw TypeError(6, fmt::format("{}: an example has {} weights", op, sizes.draw_of(sizes.heads, 0)),
                  "with dropout it has fewer than 2^32: the counter of random values has 32 bits for them");
}

// Of all pairs of a query and a key that it sees: so many products of the elements of a head, and the rounds of Philox.
double operations(const AttentionSizes& sizes, bool causal, double products, bool dropout) {
  constexpr double draw = 60;
  const auto queries = static_cast<double>(sizes.queries), keys = static_cast<double>(sizes.keys);
  const double pairs = causal ? queries * (queries + 1) / 2 : queries * keys;
  return pairs * static_cast<double>(sizes.examples) * static_cast<double>(sizes.heads) *
         (2 * products * static_cast<double>(sizes.width) + (dropout ? draw : 0));
}

}  // namespace

std::vector<Type> Attention::infer(const InferContext& context) const {
  const std::size_t dropout = dropout_of(context.operands.size());
  if (offset && dropout == 0) {
    throw TypeError(6, fmt::format("{}: offset=true with {} operands", name, context.operands.size()),
                    "it takes q, k, v, and of dropout key, rows, rate, scale and offset");
  }
  static constexpr std::string_view names[] = {"q", "k", "v"};
  expect_floating(name, dropout == 0 ? context.operands : context.operands.first(3), names);
  expect_heads(name, context.operands, causal);
  if (dropout > 0) expect_dropout(name, context.operands, dropout, offset);
  const Type& q = context.operands[0];
  return {{q.dtype, q.shape, {}}, lse_type(q)};
}

std::vector<Type> AttentionGrad::infer(const InferContext& context) const {
  const std::span<const Type> operands = context.operands;
  const std::size_t count = operands.size(), dropout = dropout_of(count);
  const std::size_t heads = dropout > 0 ? dropout : count;  // the operands before those of dropout
  if ((heads != 6 && heads != 7) || (offset && dropout == 0)) {
    throw TypeError(6, fmt::format("{} of {} operands", name, count),
                    fmt::format("{} takes q, k, v, out, lse, dout, optionally dlse, and with dropout key, rows, rate "
                                "and scale{}",
                                name, offset ? ", and with offset=true an offset" : ""));
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
  if (has_dlse(count)) expect("dlse", 6, lse);
  if (dropout > 0) expect_dropout(name, operands, dropout, offset);
  const Type& k = operands[1];
  return {{q.dtype, q.shape, {}}, {k.dtype, k.shape, {}}, {k.dtype, k.shape, {}}};
}

// Two products: scores, and their sums of v.
Cost Attention::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results,
                 operations({operands[0].shape, operands[1].shape}, causal, 2, dropout_of(operands.size()) > 0));
}

// Five products: scores again, the gradients of the probabilities, and dq, dk and dv.
Cost AttentionGrad::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results,
                 operations({operands[0].shape, operands[1].shape}, causal, 5, dropout_of(operands.size()) > 0));
}

Cotangents Attention::derivative(VjpContext& context) const {
  Builder& b = context.b;
  const Type out = b.type(context.results[0]);
  const std::span<const Value> heads = context.operands.first(3), dropout = context.operands.subspan(3);
  for (std::size_t i = 3; i < context.operands.size(); ++i) {
    if (context.needed[i]) {
      throw TypeError(6, "attention: a gradient of its dropout", "rate and scale are numbers that nothing trains");
    }
  }
  std::vector<Value> operands(heads.begin(), heads.end());
  operands.insert(operands.end(), context.results.begin(), context.results.end());
  operands.push_back(context.cotangents[0] ? *context.cotangents[0] : b.constant(out.dtype, 0, out.shape));
  if (context.cotangents[1]) operands.push_back(*context.cotangents[1]);
  operands.insert(operands.end(), dropout.begin(), dropout.end());
  const std::vector<Value> gradients = b.emit_all(AttentionGrad{causal, offset}, operands);
  Cotangents result(context.operands.size());
  for (std::size_t i = 0; i < 3; ++i) {
    if (context.needed[i]) result[i] = gradients[i];
  }
  return result;
}

}  // namespace pmaptrain::ops
