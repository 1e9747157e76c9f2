// Indices along a dimension.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// Has no operand. Each element is its index along dimension `dim`, in a numeric element type.
struct Iota {
  static constexpr std::string_view name = "iota";
  static constexpr bool local = true;
  static constexpr WholeRows row_rule{"it has no operand"};
  static constexpr UseReference cpu{"it only fills memory"};
  static constexpr NoDerivative derivative{"it has no operand"};

  DType dtype = DType::i32;
  Shape shape = {0};
  std::int64_t dim = 0;

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  void attributes(AttributeVisitor& visitor) {
    visitor.field("dtype", dtype);
    visitor.field("shape", shape);
    visitor.field("dim", dim);
  }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
};

}  // namespace pmaptrain::ops
