// Two norms of a value, in one pass over it.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// x, floating -> the sum of its squares (the square of the 2-norm) as f64[], and the largest magnitude (the infinity
// norm) as a scalar of x's type. For f32, squares are exact and do not overflow, so the sum is finite if and only if
// all elements are. If x contains a NaN, both results are NaN; if x is empty, both are 0.
struct Norms {
  static constexpr std::string_view name = "norms";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;
  static constexpr WholeRows row_rule{"the largest magnitude is no sum"};
  static constexpr NoDerivative derivative{"it serves to monitor values; reduce_sum of mul has a derivative"};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  void attributes(AttributeVisitor&) {}
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
};

}  // namespace pmaptrain::ops
