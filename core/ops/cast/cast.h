// Converts a value to another element type.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// Floating to floating: rounds to nearest. Floating to integer: rounds towards zero and saturates; NaN becomes 0.
// Integer to integer: wraps. To boolean: true unless the element is 0.
struct Cast {
  static constexpr std::string_view name = "cast";
  static constexpr bool local = true;
  static constexpr bool elementwise = true;

  DType dtype = DType::f32;

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  RowRule row_rule(std::span<const Type>, std::span<const Type>) const { return {RowRule::Kind::keeps}; }
  void attributes(AttributeVisitor& visitor) { visitor.field("dtype", dtype); }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
};

// Returns x if it has this element type, else a cast of it.
Value as_dtype(Builder& b, DType dtype, Value x);

}  // namespace pmaptrain::ops
