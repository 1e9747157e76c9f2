// Sums over rows of elements that a chain computes, and what another chain makes of the sums: for example the
// statistics of a batch norm. The elements are never stored. For GPUs only: on the CPU, a tile of them stays in the
// cache anyway. The passes for GPUs create these equations (core/passes/fuse_columns.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/program.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"
#include "core/ops/reduce/reduce.h"

namespace pmaptrain::ops {

// The region has a parameter for each operand, of its type. Its equations are those of a fused chain over the elements
// of a matrix; reduce_sums of such values over all rows, with equally many rows and columns each; and those of a chain
// over the columns. It yields sums and values of the second chain. A sum may need others, as that of squared
// differences from a mean does (CentredSum). At least one parameter has an element for each
// element of the matrix. A call may be for the rows of several devices, one after another: of the operands that have
// these rows.
struct FusedColumns {
  static constexpr std::string_view name = "fused_columns";
  static constexpr bool local = true;
  static constexpr bool region = true;
  static constexpr UseReference cpu{"no pass makes it for the CPU"};
  static constexpr NoDerivative derivative{"equations are fused after differentiation"};
  static constexpr WholeRows row_rule{"the equations of its region tell what it does with rows"};

  std::vector<Type> infer(const InferContext& context) const;
  // Counts memory traffic. The arithmetic is counted for the equations of the region.
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  void attributes(AttributeVisitor&) {}
  // Runs equation by equation.
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
};

// The most sums of an equation: a block keeps elements of all in shared memory.
inline constexpr std::size_t most_column_sums = 8;

// The sum over rows of (x - mean)², with a mean of each column that the region computes from other sums; and of 0 where
// `inside` is false. A GPU reads x once, for the mean and for this.
struct CentredSum {
  Value x, mean;
  std::optional<Value> inside;
};
struct ColumnSum {
  const Equation* equation = nullptr;
  std::optional<CentredSum> centred;
};
// The sums of a region, in order. None if elements of one are computed from other sums in any other way: a GPU would
// have to read all elements again.
std::vector<ColumnSum> column_sums(const Region& region, std::span<const Type> types);

// A matrix whose columns a sum adds up.
struct Matrix {
  std::int64_t rows = 1, columns = 1;
  std::int64_t elements() const { return rows * columns; }
  bool operator==(const Matrix&) const = default;
};

// Null if the sum is not over all leading dimensions, or does not have two rows and two columns.
std::optional<Matrix> matrix_of(const ReduceSum& sum, const Shape& operand);
// The matrix of one device in a request, which may be for the rows of several.
Matrix matrix_of(const GpuRequest& request);

}  // namespace pmaptrain::ops
