// Extracts a box from an array.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// Indices starts[i] to limits[i] - 1 of each dimension i.
struct Slice {
  static constexpr std::string_view name = "slice";
  static constexpr bool local = true;
  static constexpr UseReference cpu{"it only copies memory, in the longest contiguous runs"};

  std::vector<std::int64_t> starts = {};
  std::vector<std::int64_t> limits = {};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  RowRule row_rule(std::span<const Type> operands, std::span<const Type>) const {
    return keeps_rows_if(!starts.empty() && starts[0] == 0 && limits[0] == operands[0].shape[0]);
  }
  void attributes(AttributeVisitor& visitor) {
    visitor.field("starts", starts);
    visitor.field("limits", limits);
  }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
};

}  // namespace pmaptrain::ops
