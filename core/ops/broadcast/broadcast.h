// Repeats elements along new dimensions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// The operand's dimension i becomes the result's dimension dims[i], of the same size; `dims` is ascending. The operand
// is repeated along all other dimensions.
struct Broadcast {
  static constexpr std::string_view name = "broadcast";
  static constexpr bool local = true;
  static constexpr UseReference cpu{"it only copies memory, in the longest contiguous runs"};

  Shape shape = {};
  std::vector<std::int64_t> dims = {};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  // If the operand's dimension 0 is not the result's dimension 0, each row of the result repeats the whole operand.
  RowRule row_rule(std::span<const Type>, std::span<const Type>) const {
    return keeps_rows_if(!shape.empty(), dims.empty() || dims.front() != 0 ? 0b1 : 0);
  }
  void attributes(AttributeVisitor& visitor) {
    visitor.field("shape", shape);
    visitor.field("dims", dims);
  }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
};

}  // namespace pmaptrain::ops
