// The largest elements of each row.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// x [..., n] -> the k largest elements of the last dimension in descending order, [..., k], and their indices as i32.
// Equal elements keep their order, so with k = n this is a stable sort. A NaN counts as largest.
struct TopK {
  static constexpr std::string_view name = "top_k";
  static constexpr bool local = true;

  std::int64_t k = 1;

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  RowRule row_rule(std::span<const Type> operands, std::span<const Type>) const {
    return keeps_rows_if(operands[0].shape.size() > 1);
  }
  void attributes(AttributeVisitor& visitor) { visitor.field("k", k); }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
};

}  // namespace pmaptrain::ops
