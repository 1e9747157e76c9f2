// Chains and reductions over the rows of a matrix, computed row by row in one pass: softmax and its like. GPUs only: on
// the CPU a row's values are in the cache anyway, so core/runtime/gpu makes these equations of a program.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/program.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// The region has a parameter for each operand, of its type. A value in it has an element for each element of the
// matrix, one for each row, or one. Its equations are those of a fused chain; reduce_sum, reduce_max and argmax, which
// make one element of a row; and one_hot and broadcast, which make a row of one. Where all of them are sums, a GPU may
// be given the rows of several devices as one.
struct FusedRows {
  static constexpr std::string_view name = "fused_rows";
  static constexpr bool local = true;
  static constexpr bool region = true;
  static constexpr UseReference cpu{"no pass makes it for the CPU"};
  static constexpr NoDerivative derivative{"equations are fused after differentiation"};

  std::int64_t length = 2;  // of a row, at least 2

  std::vector<Type> infer(const InferContext& context) const;
  // The traffic; arithmetic is counted for the equations of the region.
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  // Keeps dimension 0 where all operands and results have it alike, single elements aside.
  RowRule row_rule(std::span<const Type> operands, std::span<const Type> results) const;
  void attributes(AttributeVisitor& visitor) { visitor.field("length", length); }
  // Equation by equation.
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
};

// Of one equation over `rows` rows of `length`: whether it belongs into such a region. `operands` and `results` are its
// own types.
bool fits_rows(const Equation& equation, std::span<const Type> operands, const Type& result, std::int64_t rows,
               std::int64_t length);

// Whether an op makes one element of each row of `length`, of an operand of this shape.
bool reduces_rows(const Op& op, const Shape& operand, std::int64_t length);

}  // namespace pmaptrain::ops
