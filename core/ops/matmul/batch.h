// Batched matrix products.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"
#include "core/ops/matmul/matmul.h"

namespace pmaptrain::ops {

// [batch..., m,k] x [batch..., k,n] -> [batch..., m,n], for every numeric element type and any number of equal batch
// dimensions. Each pair of matrices is multiplied as in matmul, which also defines the attributes.
struct BatchMatmul {
  static constexpr std::string_view name = "batch_matmul";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;
  static constexpr bool cpu_takes_bf16 = true;

  bool transpose_a = false;
  bool transpose_b = false;
  std::optional<DType> preferred_element_type = {};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  // Without batch dimensions, dimension 0 has the same role as in matmul.
  RowRule row_rule(std::span<const Type> operands, std::span<const Type>) const {
    if (operands[0].shape.size() > 2) return {RowRule::Kind::keeps};
    return Matmul{transpose_a, transpose_b}.row_rule(operands, {});
  }
  void attributes(AttributeVisitor& visitor) {
    visitor.field("transpose_a", transpose_a);
    visitor.field("transpose_b", transpose_b);
    visitor.seldom("preferred_element_type", preferred_element_type);
  }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
};

}  // namespace pmaptrain::ops
