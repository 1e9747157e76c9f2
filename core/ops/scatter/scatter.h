// Replaces rows by index.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// operand [V, rest...], indices i32 or i64 [n], rows [n, rest...] -> the operand with rows[i] in place of row
// indices[i]. Indices outside [0, V) are ignored, and no two others may be equal: then the order of the rows does not
// matter. A backend may compute the result in the operand's memory; then only the n rows are written.
struct Scatter {
  static constexpr std::string_view name = "scatter";
  static constexpr bool local = true;
  static constexpr bool writes_in_place = true;
  static constexpr UseReference cpu{"it only copies memory"};
  static constexpr WholeRows row_rule{"an index may name any of the rows"};
  static constexpr NoDerivative derivative{"it serves to update parameters"};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  void attributes(AttributeVisitor&) {}
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
};

}  // namespace pmaptrain::ops
