// Matrix product.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// The number of multiplications of one device, over the whole batch, below which a plain loop is faster than the
// library (measured: at half of it both take 0.6 us).
inline constexpr std::int64_t least_products = 16 * 32 * 16;

// [m,k] x [k,n] -> [m,n], for every numeric element type; integers wrap. With transpose_a the first operand is stored
// as [k,m], with transpose_b the second as [n,k]. Where a dimension of rows is written, there may be several: [b,t,k] x
// [k,n] is [b,t,n], and with transpose_a [b,t,m] x [b,t,n] is [m,n]. So examples of several rows keep their dimension,
// and the kernels see matrices (as_matrices). A contraction over nothing (k = 0) gives zeros. A third operand, the
// bias [n], is added to each row; with `relu`, the op relu is then applied. A NaN is kept, but a sum that overflowed to
// -inf may become NaN rather than 0. Products of bf16 are accumulated in f32; a bias of bf16 or f32 is added before the
// result is rounded. With a preferred_element_type of f32, the result is not rounded.
struct Matmul {
  static constexpr std::string_view name = "matmul";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;
  static constexpr bool cpu_takes_bf16 = true;
  static constexpr bool cpu_takes_columns = true;

  bool transpose_a = false;
  bool transpose_b = false;
  bool relu = false;
  std::optional<DType> preferred_element_type = {};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  RowRule row_rule(std::span<const Type> operands, std::span<const Type>) const {
    if (!transpose_a) return {RowRule::Kind::keeps, 0b110};  // the second matrix and the bias
    if (!transpose_b && !relu && operands.size() == 2) return {RowRule::Kind::sums, 0, RowRule::Parts::either};
    return {};
  }
  void attributes(AttributeVisitor& visitor) {
    visitor.field("transpose_a", transpose_a);
    visitor.field("transpose_b", transpose_b);
    visitor.flag("relu", relu);
    visitor.seldom("preferred_element_type", preferred_element_type);
  }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
  // The second matrix, such as the weights of a dense layer: the library's kernels read it in blocks of columns.
  std::optional<std::size_t> prepared_operand() const {
    return transpose_a ? std::nullopt : std::optional<std::size_t>(1);
  }
  std::unique_ptr<CpuPreparation> prepare(const CpuRequest& request) const;
};

// The number of rows where all dimensions but the last are rows. Allocates nothing.
inline std::int64_t matrix_rows(const Shape& shape) {
  std::int64_t rows = 1;
  for (std::size_t d = 0; d + 1 < shape.size(); ++d) rows *= shape[d];
  return rows;
}

// The types of a matmul's operands and results as those of matrices: their rows are one dimension.
struct MatmulTypes {
  std::vector<Type> operands, results;
};
MatmulTypes as_matrices(const Matmul& op, std::span<const Type> operands, std::span<const Type> results);

// A request (of a CPU or of a GPU) for `matrices`. They have to outlive it.
template <class Request>
Request request_for(const MatmulTypes& matrices, const Request& request) {
  Request of_matrices = request;
  of_matrices.operands = matrices.operands;
  of_matrices.results = matrices.results;
  return of_matrices;
}

}  // namespace pmaptrain::ops
