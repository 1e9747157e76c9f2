// Finds equal indices.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// indices i32 or i64 [n] -> two arrays like it. The first has for each index the position of the first index that is
// equal to it, or n for an index outside [0, rows). The second has each index at its first position, and `rows` at all
// other positions. So scatter_add by the first result adds what belongs to equal indices, and the second result names
// each row of a table at most once.
struct FirstOccurrence {
  static constexpr std::string_view name = "first_occurrence";
  static constexpr bool local = true;
  static constexpr UseReference cpu{"it sorts the positions in the memory of its results"};
  static constexpr WholeRows row_rule{"an index may be equal to that of any row"};
  static constexpr NoDerivative derivative{"its results are integers"};

  std::int64_t rows = 0;

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  void attributes(AttributeVisitor& visitor) { visitor.field("rows", rows); }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
};

}  // namespace pmaptrain::ops
