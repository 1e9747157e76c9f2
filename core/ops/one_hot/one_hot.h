// One-hot encoding of indices.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// indices i32 or i64 [I...] -> [I..., depth] of any numeric element type. An index outside [0, depth) gives zeros.
struct OneHot {
  static constexpr std::string_view name = "one_hot";
  static constexpr bool local = true;
  static constexpr UseReference cpu{"it only fills memory"};
  static constexpr NoDerivative derivative{"its operand is an integer"};

  std::int64_t depth = 0;
  DType dtype = DType::f32;

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  RowRule row_rule(std::span<const Type> operands, std::span<const Type>) const {
    return keeps_rows_if(!operands[0].shape.empty());
  }
  void attributes(AttributeVisitor& visitor) {
    visitor.field("depth", depth);
    visitor.field("dtype", dtype);
  }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
};

}  // namespace pmaptrain::ops
