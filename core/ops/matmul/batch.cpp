#include "core/ops/matmul/batch.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/graph/builder.h"
#include "core/ops/cast/cast.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/matmul/multiply.h"
#include "core/ops/support/rules.h"

#ifndef PMAPTRAIN_REFERENCE_KERNELS
#include "core/kernel/in_f32.h"
#include "core/kernel/onednn.h"
#endif

namespace pmaptrain::ops {
namespace {

struct Sizes {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
};

Sizes sizes_of(const Shape& a, const Shape& b, bool transpose_a, bool transpose_b) {
  const std::size_t rank = a.size();
  Sizes sizes;
  for (std::size_t i = 0; i + 2 < rank; ++i) sizes.batch *= a[i];
  sizes.m = a[rank - (transpose_a ? 1 : 2)];
  sizes.k = a[rank - (transpose_a ? 2 : 1)];
  sizes.n = b[rank - (transpose_b ? 2 : 1)];
  return sizes;
}

}  // namespace

std::vector<Type> BatchMatmul::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 2);
  const Type& a = context.operands[0];
  const Type& b = context.operands[1];
  expect_numeric(name, a.dtype);
  expect_rank(name, a.shape);
  const std::string found =
      fmt::format("{} of a {}{} and b {}{}", name, describe(a), transpose_a ? " (transposed)" : "", describe(b),
                  transpose_b ? " (transposed)" : "");
  if (a.dtype != b.dtype) {
    throw TypeError(6, found, "both operands have the same numeric element type; cast one of them");
  }
  const std::size_t rank = a.shape.size();
  if (rank < 2 || b.shape.size() != rank || !std::equal(a.shape.begin(), a.shape.end() - 2, b.shape.begin())) {
    throw TypeError(6, found, "both have the same batch dimensions, and then two of a matrix");
  }
  const Sizes sizes = sizes_of(a.shape, b.shape, transpose_a, transpose_b);
  const std::int64_t kb = b.shape[rank - (transpose_b ? 1 : 2)];
  if (sizes.k != kb) {
    throw TypeError(6, fmt::format("{}: it would contract {} elements with {}", found, sizes.k, kb),
                    "a has as many columns as b has rows");
  }
  Shape shape = a.shape;
  shape[rank - 2] = sizes.m;
  shape[rank - 1] = sizes.n;
  return one_result(result_dtype(name, a.dtype, preferred_element_type), std::move(shape));
}

Cost BatchMatmul::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  const Sizes sizes = sizes_of(operands[0].shape, operands[1].shape, transpose_a, transpose_b);
  return traffic(operands, results, 2.0 * static_cast<double>(sizes.k) * static_cast<double>(numel(results[0])));
}

// As for matmul: if A and B are the operands after transposition, dA = dC Bᵀ and dB = Aᵀ dC.
Cotangents BatchMatmul::derivative(VjpContext& context) const {
  Cotangents result(2);
  const Value a = context.operands[0], b = context.operands[1];
  const Value g = as_dtype(context.b, context.b.type(a).dtype, *context.cotangents[0]);
  if (context.needed[0]) {
    result[0] = transpose_a ? context.b.emit(BatchMatmul{transpose_b, true}, {b, g})
                            : context.b.emit(BatchMatmul{false, !transpose_b}, {g, b});
  }
  if (context.needed[1]) {
    result[1] = transpose_b ? context.b.emit(BatchMatmul{true, transpose_a}, {g, a})
                            : context.b.emit(BatchMatmul{!transpose_a, false}, {a, g});
  }
  return result;
}

void BatchMatmul::reference(const ReferenceCall& call) const {
  const Sizes s = sizes_of(call.operands[0].shape(), call.operands[1].shape(), transpose_a, transpose_b);
  dispatch_arithmetic(call.results[0].dtype(), [&]<class T>() {
    for (std::int64_t i = 0; i < s.batch; ++i) {
      multiply(s.m, s.n, s.k, call.operands[0].as<T>() + i * s.m * s.k, transpose_a,
               call.operands[1].as<T>() + i * s.k * s.n, transpose_b, call.results[0].as<T>() + i * s.m * s.n);
    }
  });
}

#ifdef PMAPTRAIN_REFERENCE_KERNELS

std::unique_ptr<CpuKernel> BatchMatmul::cpu(const CpuRequest&) const { return nullptr; }

#else

std::unique_ptr<CpuKernel> BatchMatmul::cpu(const CpuRequest& request) const {
  Sizes s = sizes_of(request.operands[0].shape, request.operands[1].shape, transpose_a, transpose_b);
  const DType dtype = request.operands[0].dtype;
  if (dtype != DType::f32 && !(dtype == DType::bf16 && multiplies_bf16_faster())) return nullptr;
  if (s.batch * s.m * s.n * s.k < least_products) return nullptr;
  // The products of several devices form one batch, because products of a batch are independent.
  const bool merged = request.stacked[0] && request.stacked[1];
  if (merged) s.batch *= request.devices;
  const auto desc_of = [&](DType of, std::int64_t rows, std::int64_t columns, bool transposed) {
    return onednn::strided_desc(name, of, {s.batch, rows, columns},
                                {rows * columns, transposed ? 1 : columns, transposed ? rows : 1});
  };
  const onednn::MemoryDesc a = desc_of(dtype, s.m, s.k, transpose_a), b = desc_of(dtype, s.k, s.n, transpose_b),
                           c = desc_of(request.results[0].dtype, s.m, s.n, false);
  dnnl_primitive_desc_t created = nullptr;
  const dnnl_status_t status = dnnl_matmul_primitive_desc_create(&created, onednn::engine(), a.get(), b.get(), nullptr,
                                                                 c.get(), onednn::attributes(name).get());
  const onednn::PrimitiveDesc desc = onednn::own_primitive_desc(name, status, created);
  if (!desc) return nullptr;
  auto kernel = std::make_unique<onednn::Sequence>(name, request, merged);
  kernel->add(desc, {{DNNL_ARG_SRC, a.get(), onednn::operand(0)},
                     {DNNL_ARG_WEIGHTS, b.get(), onednn::operand(1)},
                     {DNNL_ARG_DST, c.get(), onednn::result(0)}});
  kernel->use_name_of(desc);
  return kernel;
}

#endif  // PMAPTRAIN_REFERENCE_KERNELS

}  // namespace pmaptrain::ops
