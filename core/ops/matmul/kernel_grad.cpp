#include "core/ops/matmul/kernel_grad.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/ops/matmul/matmul.h"
#include "core/ops/matmul/multiply.h"
#include "core/ops/matmul/product.h"
#include "core/ops/reduce/loops.h"
#include "core/ops/support/arithmetic.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

Matmul product_of(const MatmulKernelGrad& op) { return {true, false, false, op.preferred_element_type}; }

}  // namespace

std::vector<Type> MatmulKernelGrad::infer(const InferContext& context) const {
  if (context.operands.size() != 2) {
    throw TypeError(6, fmt::format("{} of {} operands", name, context.operands.size()), "the operands are x and dy");
  }
  for (const Type& type : context.operands) {
    if (!is_floating(type.dtype)) {
      throw TypeError(6, fmt::format("{} of {}", name, to_string(type.dtype)), "the operands are floating-point");
    }
  }
  std::vector<Type> results = product_of(*this).infer(context);
  results.push_back({results[0].dtype, {results[0].shape.back()}, {}});
  return results;
}

Cost MatmulKernelGrad::cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const {
  Cost cost = product_of(*this).cost(mesh, operands, results);
  cost.flops += static_cast<double>(numel(operands[1]));
  cost.bytes += static_cast<double>(bytes(results[1]));
  return cost;
}

void MatmulKernelGrad::reference(const ReferenceCall& call) const {
  dispatch_floating_arithmetic(call.results[0].dtype(), [&]<class T>() {
    const std::int64_t m = call.results[0].shape()[0], n = call.results[0].shape()[1];
    const std::int64_t k = matrix_rows(call.operands[0].shape());
    const T* dy = call.operands[1].as<T>();
    multiply(m, n, k, call.operands[0].as<T>(), true, dy, false, call.results[0].as<T>());
    T* const sums = call.results[1].as<T>();
    std::fill(sums, sums + n, T{});
    reduce_rows<SumReducer>(dy, static_cast<std::size_t>(k), static_cast<std::size_t>(n), sums);
  });
}

// Without rows, both gradients are zeros.
GpuKernel MatmulKernelGrad::gpu(const GpuRequest& given) const {
  if (numel(given.operands[1]) == 0) return zeros_kernel(given);
  const MatmulTypes matrices = as_matrices(product_of(*this), given.operands, given.results);
  const GpuRequest request = request_for(matrices, given);
  const Shape& y = request.results[0].shape;
  GpuMatmul call = GpuProduct{1, y[0], y[1], request.operands[0].shape[0], true}.by_library(request);
  call.column_sums = request.results[1].dtype;
  return one_command(request, call);
}

}  // namespace pmaptrain::ops
