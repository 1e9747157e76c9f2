#include "core/ops/matmul/matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/graph/builder.h"
#include "core/ops/cast/cast.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/support/epilogue.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

using pmaptrain::to_string;

std::string operand_text(std::string_view operand, const Type& type, bool transposed) {
  return fmt::format("{} {}{}", operand, to_string(type.shape), transposed ? " (transposed)" : "");
}

}  // namespace

std::vector<Type> Matmul::infer(const InferContext& context) const {
  const auto operands = context.operands;
  if (operands.size() != 2 && operands.size() != 3) {
    throw TypeError(6, fmt::format("matmul of {} operands", operands.size()),
                    "matmul takes two matrices, and may take a bias");
  }
  const Type& a = operands[0];
  const Type& b = operands[1];
  const std::string found =
      fmt::format("matmul of {} and {}", operand_text("a", a, transpose_a), operand_text("b", b, transpose_b));
  if (a.shape.size() < 2 || b.shape.size() < 2) {
    throw TypeError(6, found, "both operands have two dimensions; reshape the others into them");
  }
  if (transpose_a ? transpose_b && (a.shape.size() > 2 || b.shape.size() > 2) : b.shape.size() > 2) {
    throw TypeError(6, found, "several dimensions of rows are those of a, or with transpose_a those of a and b alike");
  }
  if (a.dtype != b.dtype || a.dtype == DType::boolean) {
    throw TypeError(6, fmt::format("{}: a is {} and b is {}", found, to_string(a.dtype), to_string(b.dtype)),
                    "both operands have the same numeric element type; cast one of them");
  }
  if (transpose_a && !transpose_b && (a.shape.size() > 2 || b.shape.size() > 2)) {
    if (!std::equal(a.shape.begin(), a.shape.end() - 1, b.shape.begin(), b.shape.end() - 1)) {
      throw TypeError(6, fmt::format("{}: they have different rows", found),
                      "all dimensions but the last are contracted, and are equal");
    }
  }
  const std::int64_t ka = transpose_a ? matrix_rows(a.shape) : a.shape.back();
  const std::int64_t kb = transpose_b ? b.shape.back() : matrix_rows(b.shape);
  if (ka != kb) {
    throw TypeError(6, fmt::format("{}: it would contract {} elements with {}", found, ka, kb),
                    "a has as many columns as b has rows");
  }
  const std::int64_t columns = transpose_b ? b.shape.front() : b.shape.back();
  if (operands.size() == 3) {
    expect_bias(name, operands[2], a.dtype, columns);
  }
  Shape shape = transpose_a ? Shape{a.shape.back()} : Shape(a.shape.begin(), a.shape.end() - 1);
  shape.push_back(columns);
  return {{result_dtype(name, a.dtype, preferred_element_type), std::move(shape), {}}};
}

MatmulTypes as_matrices(const Matmul& op, std::span<const Type> operands, std::span<const Type> results) {
  MatmulTypes types{{operands.begin(), operands.end()}, {results.begin(), results.end()}};
  const auto flatten = [](Type& type) { type.shape = {matrix_rows(type.shape), type.shape.back()}; };
  flatten(types.operands[0]);
  if (op.transpose_a) flatten(types.operands[1]);
  if (!op.transpose_a) flatten(types.results[0]);
  return types;
}

Cost Matmul::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  Cost cost;
  const std::int64_t k = transpose_a ? matrix_rows(operands[0].shape) : operands[0].shape.back();
  cost.flops = 2.0 * static_cast<double>(k) * static_cast<double>(numel(results[0]));
  for (const Type& type : operands) cost.bytes += static_cast<double>(bytes(type));
  cost.bytes += static_cast<double>(bytes(results[0]));
  return cost;
}

// If A and B are the operands after transposition, dA = dC Bᵀ and dB = Aᵀ dC. If an operand is stored transposed, its
// cotangent is computed transposed.
Cotangents Matmul::derivative(VjpContext& context) const {
  Cotangents result(context.operands.size());
  if (!context.cotangents[0]) return result;
  const Value a = context.operands[0], b = context.operands[1];
  const Value dc = relu ? relu_cotangent(context) : *context.cotangents[0];
  const Value g = as_dtype(context.b, context.b.type(a).dtype, dc);
  if (context.needed[0]) {
    result[0] = transpose_a ? context.b.emit(Matmul{transpose_b, true}, {b, g})
                            : context.b.emit(Matmul{false, !transpose_b}, {g, b});
  }
  if (context.needed[1]) {
    result[1] = transpose_b ? context.b.emit(Matmul{true, transpose_a}, {g, a})
                            : context.b.emit(Matmul{!transpose_a, false}, {a, g});
  }
  if (result.size() == 3 && context.needed[2]) {
    std::vector<std::int64_t> rows = all_dims(context.b.type(dc).shape);
    rows.pop_back();
    result[2] = sum_as(context.b, context.b.type(context.operands[2]).dtype, dc, rows);
  }
  return result;
}

}  // namespace pmaptrain::ops
