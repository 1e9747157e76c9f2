#include "core/ops/matmul/matmul.h"

#ifndef PMAPTRAIN_REFERENCE_KERNELS
#include "core/kernel/onednn.h"
#include "core/ops/matmul/narrow.h"
#endif

namespace pmaptrain::ops {

#ifdef PMAPTRAIN_REFERENCE_KERNELS

std::unique_ptr<CpuKernel> Matmul::cpu(const CpuRequest&) const { return nullptr; }

#else

namespace {

// Whether a row of the result has the same bits whatever rows are multiplied with it, so that devices may share a call
// and still agree with private copies, which may not. So it is of the library's kernels for AVX-512 (measured: the
// tests ask many shapes); its GEMM, which machines without AVX-512 meet, takes other paths for other numbers of rows.
bool rows_are_independent(const onednn::PrimitiveDesc& desc) {
  return onednn::implementation_of(desc).starts_with("brg:avx512");
}

}  // namespace

std::unique_ptr<CpuKernel> Matmul::cpu(const CpuRequest& request) const {
  const Type& a = request.operands[0];
  const Type& c = request.results[0];
  const std::int64_t m = c.shape[0], n = c.shape[1], k = a.shape[transpose_a ? 0 : 1];
  if (auto narrow = make_narrow_kernel(*this, request)) return narrow;
  if (c.dtype != DType::f32 || m * n * k < least_products) return nullptr;

  const bool with_bias = request.operands.size() == 3;
  const onednn::Desc b_desc = onednn::strided(name, {k, n}, transpose_b ? Shape{1, k} : Shape{n, 1});
  const onednn::Desc bias_desc = onednn::strided(name, {1, n}, {n, 1});
  const auto a_of = [&](std::int64_t rows) {
    return onednn::strided(name, {rows, k}, transpose_a ? Shape{1, m} : Shape{k, 1});
  };
  const auto c_of = [&](std::int64_t rows) { return onednn::strided(name, {rows, n}, {n, 1}); };
  const auto primitive = [&](std::int64_t rows, bool with_relu) {
    const onednn::Desc a_desc = a_of(rows), c_desc = c_of(rows);
    dnnl_primitive_desc_t created = nullptr;
    const dnnl_status_t status = dnnl_matmul_primitive_desc_create(
        &created, onednn::engine(), a_desc.get(), b_desc.get(), with_bias ? bias_desc.get() : nullptr, c_desc.get(),
        onednn::attributes(name, with_relu).get());
    return onednn::take(name, status, created);
  };
  const auto independent = [&](std::int64_t rows) {
    const onednn::PrimitiveDesc desc = primitive(rows, relu);
    return desc && rows_are_independent(desc);
  };

  // Rows of several devices are one batch where they are rows of a as it is stored, and meet the same b.
  const bool merged = request.devices > 1 && !transpose_a && request.stacked[0] && !request.stacked[1] &&
                      !(with_bias && request.stacked[2]) && independent(m) && independent(m * request.devices);
  const std::int64_t rows = merged ? m * request.devices : m;
  const onednn::Desc a_desc = a_of(rows), c_desc = c_of(rows);
  onednn::PrimitiveDesc desc = primitive(rows, relu);
  const bool relu_apart = relu && (!desc || onednn::is_slow_to_follow(desc));
  if (relu_apart) desc = primitive(rows, false);
  if (!desc) return nullptr;

  auto kernel = std::make_unique<onednn::Sequence>(name, request, merged);
  std::vector<onednn::Argument> arguments = {{DNNL_ARG_SRC, a_desc.get(), onednn::operand(0)},
                                             {DNNL_ARG_WEIGHTS, b_desc.get(), onednn::operand(1)},
                                             {DNNL_ARG_DST, c_desc.get(), onednn::result(0)}};
  if (with_bias) arguments.push_back({DNNL_ARG_BIAS, bias_desc.get(), onednn::operand(2)});
  if (relu && !relu_apart) arguments.push_back(onednn::relu_slope());
  if (relu_apart) kernel->relu_after(rows * n);
  kernel->add(desc, arguments);
  kernel->named(desc);
  return kernel;
}

#endif  // PMAPTRAIN_REFERENCE_KERNELS

}  // namespace pmaptrain::ops
