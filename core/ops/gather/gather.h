// Selects rows of a table by index.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// operand [V, rest...], indices i32 or i64 [I...] -> [I..., rest...]. An index outside [0, V) gives zeros; the
// derivative, scatter_add, ignores it.
struct Gather {
  static constexpr std::string_view name = "gather";
  static constexpr bool local = true;
  static constexpr UseReference cpu{"it only copies memory, in the longest contiguous runs"};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  RowRule row_rule(std::span<const Type> operands, std::span<const Type>) const {
    return keeps_rows_if(!operands[1].shape.empty(), 0b01);  // the table
  }
  void attributes(AttributeVisitor&) {}
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
};

}  // namespace pmaptrain::ops
