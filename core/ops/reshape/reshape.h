// The same elements in another shape.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// Keeps the row-major order of the elements. The number of elements must not change.
struct Reshape {
  static constexpr std::string_view name = "reshape";
  static constexpr bool local = true;
  static constexpr bool view = true;
  static constexpr UseReference cpu{"it only copies memory, in the longest contiguous runs"};

  Shape shape = {};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  RowRule row_rule(std::span<const Type> operands, std::span<const Type>) const {
    const Shape& from = operands[0].shape;
    return keeps_rows_if(!from.empty() && !shape.empty() && from[0] == shape[0]);
  }
  void attributes(AttributeVisitor& visitor) { visitor.field("shape", shape); }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
};

}  // namespace pmaptrain::ops
