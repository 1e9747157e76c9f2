#include "core/ops/gather/gather.h"

#include <fmt/format.h>

#include <cstring>

#include "core/ops/scatter_add/scatter_add.h"
#include "core/ops/support/boxes.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {

std::vector<Type> Gather::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 2);
  const Type& table = context.operands[0];
  const Type& indices = context.operands[1];
  if (table.shape.empty()) {
    throw TypeError(6, fmt::format("{}: its table {} has no dimension to index", name, describe(table)),
                    "the first operand is [V, rest...]");
  }
  expect_index_type(name, "its indices", indices);
  Shape shape = indices.shape;
  shape.insert(shape.end(), table.shape.begin() + 1, table.shape.end());
  return one_result(table.dtype, std::move(shape));
}

Cost Gather::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  Cost cost = traffic(operands.subspan(1), results);
  cost.bytes += static_cast<double>(bytes(results[0]));  // only the selected rows of the table are read
  return cost;
}

// dtable[v] is the sum of dy over the positions whose index is v.
Cotangents Gather::derivative(VjpContext& context) const {
  Cotangents cotangents(2);
  if (context.needed[0]) {
    const std::int64_t rows = context.b.type(context.operands[0]).shape[0];
    cotangents[0] = context.b.emit(ScatterAdd{rows}, {context.operands[1], *context.cotangents[0]});
  }
  return cotangents;
}

void Gather::reference(const ReferenceCall& call) const {
  const std::int64_t rows = call.operands[0].shape()[0];
  const std::int64_t count = call.operands[1].size();
  if (call.results[0].size() == 0) return;
  const auto copy_rows = [&](const auto* indices, auto row_bytes) {
    std::byte* out = call.results[0].data;
    for (std::int64_t i = 0; i < count; ++i, out += row_bytes) {
      const auto index = static_cast<std::int64_t>(indices[i]);
      if (index >= 0 && index < rows) {
        std::memcpy(out, call.operands[0].data + static_cast<std::size_t>(index) * row_bytes, row_bytes);
      } else {
        std::memset(out, 0, row_bytes);
      }
    }
  };
  with_few_bytes(bytes(*call.results[0].type) / static_cast<std::size_t>(count), [&](auto row_bytes) {
    if (call.operands[1].dtype() == DType::i32) {
      copy_rows(call.operands[1].as<std::int32_t>(), row_bytes);
    } else {
      copy_rows(call.operands[1].as<std::int64_t>(), row_bytes);
    }
  });
}

}  // namespace pmaptrain::ops
