#include "core/ops/scatter_add/scatter_add.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/ops/gather/gather.h"
#include "core/ops/support/arithmetic.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {

std::vector<Type> ScatterAdd::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 2);
  const Type& indices = context.operands[0];
  const Type& updates = context.operands[1];
  expect_index_type(name, "its indices", indices);
  expect_numeric(name, updates.dtype);
  const std::size_t rank = indices.shape.size();
  if (updates.shape.size() < rank || !std::equal(indices.shape.begin(), indices.shape.end(), updates.shape.begin())) {
    throw TypeError(6,
                    fmt::format("{}: updates {} do not begin with the dimensions of the indices {}", name,
                                describe(updates), describe(indices)),
                    "indices are [I...] and updates [I..., rest...]");
  }
  if (rows < 0) throw TypeError(6, fmt::format("{}: rows is {}", name, rows), "the result has 0 rows or more");
  Shape shape = {rows};
  shape.insert(shape.end(), updates.shape.begin() + static_cast<std::ptrdiff_t>(rank), updates.shape.end());
  return one_result(updates.dtype, std::move(shape));
}

Cost ScatterAdd::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results, static_cast<double>(numel(operands[1])));
}

Cotangents ScatterAdd::derivative(VjpContext& context) const {
  Cotangents cotangents(2);
  if (context.needed[1]) cotangents[1] = context.b.emit(Gather{}, {*context.cotangents[0], context.operands[0]});
  return cotangents;
}

void ScatterAdd::reference(const ReferenceCall& call) const {
  if (call.results[0].size() == 0) return;
  const std::int64_t count = call.operands[0].size();
  const std::int64_t row_size = call.results[0].size() / rows;
  dispatch_arithmetic(call.results[0].dtype(), [&]<class T>() {
    T* const out = call.results[0].as<T>();
    std::fill_n(out, call.results[0].size(), T{});
    const auto add_rows = [&](const auto* indices) {
      // A width that is a compile-time constant avoids the scalar remainder loops.
      const auto add = [&](auto width) {
        const T* update = call.operands[1].as<T>();
        for (std::int64_t i = 0; i < count; ++i, update += width) {
          const auto index = static_cast<std::int64_t>(indices[i]);
          if (index < 0 || index >= rows) continue;
          T* const row = out + index * width;
          for (std::int64_t j = 0; j < width; ++j) row[j] = wrapping_add(row[j], update[j]);
        }
      };
      switch (row_size) {
        case 1: return add(std::integral_constant<std::int64_t, 1>());
        case 2: return add(std::integral_constant<std::int64_t, 2>());
        default: return add(row_size);
      }
    };
    if (call.operands[0].dtype() == DType::i32) {
      add_rows(call.operands[0].as<std::int32_t>());
    } else {
      add_rows(call.operands[0].as<std::int64_t>());
    }
  });
}

}  // namespace pmaptrain::ops
