// Arrays one after another.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// Joins one or more arrays along `dim`. Their other dimensions are equal.
struct Concatenate {
  static constexpr std::string_view name = "concatenate";
  static constexpr bool local = true;
  static constexpr UseReference cpu{"it only copies memory, in the longest contiguous runs"};

  std::int64_t dim = 0;

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  RowRule row_rule(std::span<const Type>, std::span<const Type>) const { return keeps_rows_if(dim != 0); }
  void attributes(AttributeVisitor& visitor) { visitor.field("dim", dim); }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
};

}  // namespace pmaptrain::ops
