// Sums and maxima over dimensions. Reduced dimensions disappear; `dims` is ascending.
//
// The order of additions depends only on the shape. It is blocked, so the error of a sum of n elements grows much more
// slowly than n.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// For floating and integer values; integers wrap. A sum over nothing is 0; a sum over one element is that element. bf16
// is accumulated in f32, and the result is f32 if that is the preferred_element_type.
struct ReduceSum {
  static constexpr std::string_view name = "reduce_sum";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;
  std::vector<std::int64_t> dims = {};
  std::optional<DType> preferred_element_type = {};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  RowRule row_rule(std::span<const Type>, std::span<const Type>) const {
    return {!dims.empty() && dims.front() == 0 ? RowRule::Kind::sums : RowRule::Kind::keeps};
  }
  void attributes(AttributeVisitor& visitor) {
    visitor.field("dims", dims);
    visitor.seldom("preferred_element_type", preferred_element_type);
  }
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
};

// The sum of x over `dims` with elements of type `dtype`: x's type, f32 for bf16 operands, or bf16 for f32 operands.
Value sum_as(Builder& b, DType dtype, Value x, const std::vector<std::int64_t>& dims);

// For floating and integer values. If an element is NaN, the maximum is NaN. Equal maxima share the cotangent equally
// (rule 5). A maximum over nothing is an error.
struct ReduceMax {
  static constexpr std::string_view name = "reduce_max";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;

  std::vector<std::int64_t> dims = {};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  RowRule row_rule(std::span<const Type>, std::span<const Type>) const {
    return keeps_rows_if(dims.empty() || dims.front() != 0);
  }
  void attributes(AttributeVisitor& visitor) { visitor.field("dims", dims); }
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
};

}  // namespace pmaptrain::ops
