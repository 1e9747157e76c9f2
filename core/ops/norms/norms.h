// Two norms of each row of a value, in one pass over it.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// x [...,n], floating -> the sum of the squares of each row (the square of its 2-norm) as f64[...], and the largest
// magnitude in it (the infinity norm), [...] of x's type. For f32, squares are exact and do not overflow, so the sum is
// finite if and only if all elements are. If a row contains a NaN, both results are NaN; if it is empty, both are 0.
struct Norms {
  static constexpr std::string_view name = "norms";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;
  static constexpr NoDerivative derivative{"it serves to monitor values; reduce_sum of mul has a derivative"};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  RowRule row_rule(std::span<const Type> operands, std::span<const Type>) const {
    return keeps_rows_if(operands[0].shape.size() > 1);
  }
  void attributes(AttributeVisitor&) {}
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
};

}  // namespace pmaptrain::ops
