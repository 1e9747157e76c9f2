// The gradients of a dense layer's kernel and bias at once, for GPUs.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// x, dy -> dkernel, dbias: the matmul with transpose_a of both, and the sum of dy over all dimensions but the last, as
// reduce_sum computes it. Both results have the same element type. For GPUs only, where a library may add up dy while
// it multiplies; the pass for GPUs creates these equations (core/passes/fuse_bias_gradients.h).
struct MatmulKernelGrad {
  static constexpr std::string_view name = "matmul_kernel_grad";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;
  static constexpr UseReference cpu{"no pass makes it for the CPU"};
  static constexpr NoDerivative derivative{"equations are fused after differentiation"};

  std::optional<DType> preferred_element_type = {};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  RowRule row_rule(std::span<const Type>, std::span<const Type>) const {
    return {RowRule::Kind::sums, 0, RowRule::Parts::none};
  }
  void attributes(AttributeVisitor& visitor) { visitor.seldom("preferred_element_type", preferred_element_type); }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
};

}  // namespace pmaptrain::ops
