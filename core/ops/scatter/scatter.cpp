#include "core/ops/scatter/scatter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/ops/support/rules.h"

namespace pmaptrain::ops {

std::vector<Type> Scatter::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 3);
  const Type &table = context.operands[0], &indices = context.operands[1], &rows = context.operands[2];
  expect_index_type(name, "its indices", indices);
  const bool fit = !table.shape.empty() && indices.shape.size() == 1 && rows.dtype == table.dtype &&
                   rows.shape.size() == table.shape.size() && rows.shape.front() == indices.shape.front() &&
                   std::equal(rows.shape.begin() + 1, rows.shape.end(), table.shape.begin() + 1);
  if (!fit) {
    throw TypeError(6,
                    fmt::format("{}: a table {}, indices {} and rows {} do not fit", name, describe(table),
                                describe(indices), describe(rows)),
                    "a table is [V, rest...], its indices are [n], and its rows [n, rest...] of its element type");
  }
  return one_result(table.dtype, table.shape);
}

// Counted as in place: the rows are read and written.
Cost Scatter::cost(const Mesh&, std::span<const Type> operands, std::span<const Type>) const {
  Cost cost = traffic(operands.subspan(1), {});
  cost.bytes += static_cast<double>(bytes(operands[2]));
  return cost;
}

void Scatter::reference(const ReferenceCall& call) const {
  if (call.results[0].size() == 0) return;
  const std::int64_t rows = call.results[0].shape()[0];
  const std::size_t row_bytes = bytes(*call.results[0].type) / static_cast<std::size_t>(rows);
  std::byte* const out = call.results[0].data;
  if (out != call.operands[0].data) std::memcpy(out, call.operands[0].data, bytes(*call.results[0].type));
  const auto put = [&](const auto* indices) {
    const std::byte* row = call.operands[2].data;
    for (std::int64_t i = 0; i < call.operands[1].size(); ++i, row += row_bytes) {
      const auto index = static_cast<std::int64_t>(indices[i]);
      if (index >= 0 && index < rows) std::memcpy(out + static_cast<std::size_t>(index) * row_bytes, row, row_bytes);
    }
  };
  call.operands[1].dtype() == DType::i32 ? put(call.operands[1].as<std::int32_t>())
                                         : put(call.operands[1].as<std::int64_t>());
}

}  // namespace pmaptrain::ops
