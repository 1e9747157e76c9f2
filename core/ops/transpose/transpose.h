// Permutes dimensions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// Dimension i of the result is the operand's dimension permutation[i].
struct Transpose {
  static constexpr std::string_view name = "transpose";
  static constexpr bool local = true;
  static constexpr UseReference cpu{"it only copies memory, in the longest contiguous runs"};

  std::vector<std::int64_t> permutation = {};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  RowRule row_rule(std::span<const Type>, std::span<const Type>) const {
    return keeps_rows_if(!permutation.empty() && permutation.front() == 0);
  }
  void attributes(AttributeVisitor& visitor) { visitor.field("permutation", permutation); }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
};

}  // namespace pmaptrain::ops
