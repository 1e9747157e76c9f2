// Running sums.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// Along `dim`, each element is the sum of the operand's elements up to and including it, added in this order. With
// `reverse`, it is the sum of the elements from it to the end, added from the end.
struct Cumsum {
  static constexpr std::string_view name = "cumsum";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;
  static constexpr UseReference cpu{
      "each element depends on the one before it; the other dimensions are computed in vectors"};

  std::int64_t dim = 0;
  bool reverse = false;

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  RowRule row_rule(std::span<const Type>, std::span<const Type>) const { return keeps_rows_if(dim != 0); }
  void attributes(AttributeVisitor& visitor) {
    visitor.field("dim", dim);
    visitor.flag("reverse", reverse);
  }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
};

}  // namespace pmaptrain::ops
