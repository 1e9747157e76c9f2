// Chains and reductions over the rows of a matrix, computed row by row in one pass, for example softmax. For GPUs only:
// on the CPU, a row stays in the cache anyway. The passes for GPUs create these equations (core/passes/fuse_rows.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/program.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// The region has a parameter for each operand, of its type. A value in it has one element for each element of the
// matrix, one for each row, or one. The equations are those of a fused chain; reduce_sum, reduce_max and argmax, which
// reduce a row to one element; one_hot and broadcast, which expand one element to a row; and broadcasts of a *vector*,
// a parameter that is the same for each row, such as the scale of a layer norm. If all equations are sums, a GPU may
// process the rows of several devices as one row.
struct FusedRows {
  static constexpr std::string_view name = "fused_rows";
  static constexpr bool local = true;
  static constexpr bool region = true;
  static constexpr UseReference cpu{"no pass makes it for the CPU"};
  static constexpr NoDerivative derivative{"equations are fused after differentiation"};

  std::int64_t length = 2;  // elements of a row, at least 2

  std::vector<Type> infer(const InferContext& context) const;
  // Counts memory traffic. The arithmetic is counted for the equations of the region.
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  // Keeps dimension 0 if it is equal in all operands and results, ignoring scalars and vectors.
  RowRule row_rule(std::span<const Type> operands, std::span<const Type> results) const;
  void attributes(AttributeVisitor& visitor) { visitor.field("length", length); }
  // Runs equation by equation.
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
};

// Whether an equation may be part of such a region with `rows` rows of `length` elements. `operands` and `result` are
// its own types.
bool fits_rows(const Equation& equation, std::span<const Type> operands, const Type& result, std::int64_t rows,
               std::int64_t length);

// Whether a value of this many elements is a vector. Where there are as many rows as columns, none is, because the
// number would not tell which of both its elements are for.
inline bool is_vector(std::int64_t elements, std::int64_t rows, std::int64_t length) {
  return elements == length && rows != length && rows > 1;
}

// Whether an op reduces each row of `length` elements of an operand of this shape to one element.
bool reduces_rows(const Op& op, const Shape& operand, std::int64_t length);

// The largest element of each row, the sum of exp(x - largest), and, where there is one, the sum of
// (x - largest) · one_hot(label). A row has one label. A GPU reads a long row once for all three.
struct OnlineSoftmax {
  const Equation *largest = nullptr, *sum = nullptr, *picked = nullptr;  // of the region
  Value label;                                                           // where there is `picked`
};
// Null if a region has no such sum, or reduces rows to something else that needs the largest element: then they are
// read once more anyway.
std::optional<OnlineSoftmax> online_softmax(const Region& region, std::span<const Type> types, std::int64_t length);

}  // namespace pmaptrain::ops
