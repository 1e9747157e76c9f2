// The index of the largest element.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// The index along `dim` of the largest element, as i32; of equal elements, the first. The dimension disappears. A NaN
// counts as the largest.
struct Argmax {
  static constexpr std::string_view name = "argmax";
  static constexpr bool local = true;
  static constexpr UseReference cpu{"it is limited by memory bandwidth"};
  static constexpr NoDerivative derivative{"its result is an integer"};

  std::int64_t dim = 0;

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  RowRule row_rule(std::span<const Type>, std::span<const Type>) const { return keeps_rows_if(dim != 0); }
  void attributes(AttributeVisitor& visitor) { visitor.field("dim", dim); }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
};

}  // namespace pmaptrain::ops
