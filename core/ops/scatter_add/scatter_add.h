// Adds rows by index: the transpose of gather.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// indices i32 or i64 [I...], updates [I..., rest...] -> [rows, rest...]. Each row is the sum of the updates with its
// index, in order, or 0 if there are none. Updates with an index outside [0, rows) are ignored.
struct ScatterAdd {
  static constexpr std::string_view name = "scatter_add";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;
  static constexpr UseReference cpu{"it is limited by memory bandwidth"};

  std::int64_t rows = 0;

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  // It sums rows, so all devices of a piece share one dense result.
  RowRule row_rule(std::span<const Type> operands, std::span<const Type>) const {
    return {operands[0].shape.empty() ? RowRule::Kind::whole : RowRule::Kind::sums};
  }
  void attributes(AttributeVisitor& visitor) { visitor.field("rows", rows); }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
};

}  // namespace pmaptrain::ops
