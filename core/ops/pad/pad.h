// Zeros around an array.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// Adds low[i] zeros before and high[i] zeros after the array along each dimension i.
struct Pad {
  static constexpr std::string_view name = "pad";
  static constexpr bool local = true;
  static constexpr UseReference cpu{"it only copies memory, in the longest contiguous runs"};

  std::vector<std::int64_t> low = {};
  std::vector<std::int64_t> high = {};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  RowRule row_rule(std::span<const Type>, std::span<const Type>) const {
    return keeps_rows_if(!low.empty() && low[0] == 0 && high[0] == 0);
  }
  void attributes(AttributeVisitor& visitor) {
    visitor.field("low", low);
    visitor.field("high", high);
  }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
};

}  // namespace pmaptrain::ops
