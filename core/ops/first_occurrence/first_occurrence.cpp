#include "core/ops/first_occurrence/first_occurrence.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/ops/support/rules.h"

namespace pmaptrain::ops {

std::vector<Type> FirstOccurrence::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 1);
  const Type& indices = context.operands[0];
  expect_index_type(name, "its indices", indices);
  if (indices.shape.size() != 1) {
    throw TypeError(6, fmt::format("{}: its indices {} are not of one dimension", name, describe(indices)),
                    "reshape them to [n]");
  }
  if (rows < 0) throw TypeError(6, fmt::format("{}: rows is {}", name, rows), "the indices name 0 rows or more");
  const Type result{indices.dtype, indices.shape, {}};
  return {result, result};
}

Cost FirstOccurrence::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results);
}

// Sorts the positions by index, in the memory of the second result.
void FirstOccurrence::reference(const ReferenceCall& call) const {
  const std::int64_t count = call.operands[0].size();
  const auto find = [&]<class Index>(const Index* indices) {
    Index* const first = call.results[0].as<Index>();
    Index* const named = call.results[1].as<Index>();
    std::iota(named, named + count, Index{0});
    std::sort(named, named + count,
              [&](Index a, Index b) { return indices[a] != indices[b] ? indices[a] < indices[b] : a < b; });
    Index begin = 0;  // the position of the first of the equal indices at hand
    for (std::int64_t i = 0; i < count; ++i) {
      if (i == 0 || indices[named[i]] != indices[begin]) begin = named[i];
      const bool is_row = indices[begin] >= 0 && static_cast<std::int64_t>(indices[begin]) < rows;
      first[named[i]] = is_row ? begin : static_cast<Index>(count);
    }
    for (std::int64_t i = 0; i < count; ++i) named[i] = first[i] == i ? indices[i] : static_cast<Index>(rows);
  };
  call.operands[0].dtype() == DType::i32 ? find(call.operands[0].as<std::int32_t>())
                                         : find(call.operands[0].as<std::int64_t>());
}

}  // namespace pmaptrain::ops
