#include "core/ops/matmul/matmul.h"

#ifndef PMAPTRAIN_REFERENCE_KERNELS
#include "core/kernel/in_f32.h"
#include "core/kernel/onednn.h"
#include "core/ops/matmul/narrow.h"
#endif

namespace pmaptrain::ops {

#ifdef PMAPTRAIN_REFERENCE_KERNELS

std::unique_ptr<CpuKernel> Matmul::cpu(const CpuRequest&) const { return nullptr; }
std::unique_ptr<CpuPreparation> Matmul::prepare(const CpuRequest&) const { return nullptr; }

#else

namespace {

// Whether the result of a row does not depend on the other rows of a call. Then devices may share a call, and results
// still equal those with private copies, where devices have separate calls. This holds for the library's AVX-512
// kernels (measured: the tests try many shapes; AMX was not measured). The GEMM that it uses without AVX-512 chooses
// its code by the number of rows.
bool rows_are_independent(const onednn::PrimitiveDesc& desc) {
  const std::string implementation = onednn::implementation_of(desc);
  return implementation.starts_with("brg:avx512") && implementation.find("amx") == std::string::npos;
}

// The library's primitive for a request.
struct Product {
  Product(const Matmul& op, const CpuRequest& request) : name(Matmul::name) {
    const Type& a = request.operands[0];
    const Type& c = request.results[0];
    n = c.shape[1];
    k = a.shape[op.transpose_a ? 0 : 1];
    const std::int64_t m = c.shape[0];
    with_bias = request.operands.size() == 3;
    dtype = a.dtype;
    result_dtype = c.dtype;
    const auto columns_of = [&](std::size_t operand, std::int64_t count) {
      return request.columns && request.columns->operand == operand ? request.columns->of : count;
    };
    if (op.transpose_a) a_columns = columns_of(0, m);
    b_columns = columns_of(1, n);
    b_plain = b_of(op, dtype);
    b = request.packed ? onednn::any_layout_desc(name, dtype, {k, n}) : nullptr;
    if (with_bias) bias = onednn::strided_desc(name, request.operands[2].dtype, {1, n}, {n, 1});
    const auto independent = [&](std::int64_t count) {
      const onednn::PrimitiveDesc candidate = primitive(op, count, op.relu);
      return candidate && rows_are_independent(candidate);
    };
    // Rows of several devices form one batch if a is not transposed and all devices share b.
    merged = request.devices > 1 && !op.transpose_a && request.stacked[0] && !request.stacked[1] &&
             !(with_bias && request.stacked[2]) && independent(m) && independent(m * request.devices);
    rows = merged ? m * request.devices : m;
    desc = primitive(op, rows, op.relu);
    relu_apart = op.relu && (!desc || onednn::has_slow_post_ops(desc));
    if (relu_apart) desc = primitive(op, rows, false);
  }

  onednn::MemoryDesc a_of(const Matmul& op, std::int64_t count) const {
    return onednn::strided_desc(name, dtype, {count, k}, op.transpose_a ? Shape{1, a_columns} : Shape{k, 1});
  }
  onednn::MemoryDesc b_of(const Matmul& op, DType of) const {
    return onednn::strided_desc(name, of, {k, n}, op.transpose_b ? Shape{1, k} : Shape{b_columns, 1});
  }
  onednn::MemoryDesc c_of(std::int64_t count) const {
    return onednn::strided_desc(name, result_dtype, {count, n}, {n, 1});
  }

  onednn::PrimitiveDesc primitive(const Matmul& op, std::int64_t count, bool with_relu) const {
    const onednn::MemoryDesc a = a_of(op, count), c = c_of(count);
    dnnl_primitive_desc_t created = nullptr;
    const dnnl_status_t status =
        dnnl_matmul_primitive_desc_create(&created, onednn::engine(), a.get(), (b ? b : b_plain).get(), bias.get(),
                                          c.get(), onednn::attributes(name, with_relu).get());
    return onednn::own_primitive_desc(name, status, created);
  }

  std::string_view name;
  std::int64_t rows = 0, n = 0, k = 0;
  std::int64_t a_columns = 0, b_columns = 0;  // of the matrix that a transposed a, or b, is in
  DType dtype, result_dtype;
  bool with_bias = false, merged = false, relu_apart = false;
  onednn::MemoryDesc b_plain, b, bias;  // b: null for the plain layout; bias: null if there is none
  onednn::PrimitiveDesc desc;           // null if the library has no kernel
};

bool is_worthwhile(const Type& a, const Type& c, bool transpose_a) {
  const bool known = a.dtype == DType::f32 || (a.dtype == DType::bf16 && multiplies_bf16_faster());
  return known && numel(c) * a.shape[transpose_a ? 0 : 1] >= least_products;
}

// Whether the library reads some columns of a wider matrix where they are. For f32 it then uses its GEMM, which is
// slower than copying the columns first if b has many rows, or if a transposed a is some columns of a matrix that is
// much wider than the result. For bf16 copying columns of a is faster. (Measured.)
bool takes_columns(const Matmul& op, const CpuRequest& request) {
  constexpr std::int64_t most_rows = 1024, most_widths = 2;
  if (op.transpose_b || request.devices != 1) return false;
  const bool is_f32 = request.operands[0].dtype == DType::f32;
  const auto [operand, width] = *request.columns;
  if (operand == 1) return !is_f32 || request.operands[1].shape[0] <= most_rows;
  return operand == 0 && op.transpose_a && is_f32 && width <= most_widths * request.results[0].shape[1];
}

// From this number of rows on, transposing b in each call costs less than packing it once for all calls (measured).
constexpr std::int64_t rows_worth_transposing = 48;

}  // namespace

std::unique_ptr<CpuPreparation> Matmul::prepare(const CpuRequest& given) const {
  const MatmulTypes matrices = as_matrices(*this, given.operands, given.results);
  const CpuRequest request = request_for(matrices, given);
  if (transpose_b && request.results[0].shape[0] >= rows_worth_transposing) return nullptr;
  if (!is_worthwhile(request.operands[0], request.results[0], transpose_a) || request.stacked[1] ||
      make_narrow_kernel(*this, request)) {
    return nullptr;
  }
  const Product product(*this, request);
  if (!product.desc || !onednn::implementation_of(product.desc).starts_with("brg:")) return nullptr;
  const onednn::MemoryDesc plain = product.b_of(*this, request.packed_from.value_or(product.dtype));
  return onednn::make_preparation(name, plain.get(), onednn::chosen_layout(product.desc, DNNL_ARG_WEIGHTS));
}

std::unique_ptr<CpuKernel> Matmul::cpu(const CpuRequest& given) const {
  const MatmulTypes matrices = as_matrices(*this, given.operands, given.results);
  const CpuRequest request = request_for(matrices, given);
  if (request.columns && !takes_columns(*this, request)) return nullptr;
  if (!request.columns) {
    if (auto narrow = make_narrow_kernel(*this, request)) return narrow;
  }
  if (!is_worthwhile(request.operands[0], request.results[0], transpose_a)) return nullptr;
  const Product product(*this, request);
  if (!product.desc) return nullptr;

  auto kernel = std::make_unique<onednn::Sequence>(name, request, product.merged);
  const onednn::MemoryDesc a_desc = product.a_of(*this, product.rows), c_desc = product.c_of(product.rows);
  std::vector<onednn::Argument> arguments = {
      {DNNL_ARG_SRC, a_desc.get(), onednn::operand(0)},
      {DNNL_ARG_WEIGHTS, onednn::chosen_layout(product.desc, DNNL_ARG_WEIGHTS), onednn::operand(1)},
      {DNNL_ARG_DST, c_desc.get(), onednn::result(0)}};
  if (product.with_bias) arguments.push_back({DNNL_ARG_BIAS, product.bias.get(), onednn::operand(2)});
  if (relu && !product.relu_apart) arguments.push_back(onednn::relu_slope());
  if (product.relu_apart) kernel->apply_relu_afterwards(product.result_dtype, product.rows * product.n);
  kernel->add(product.desc, arguments);
  kernel->use_name_of(product.desc);
  return kernel;
}

#endif  // PMAPTRAIN_REFERENCE_KERNELS

}  // namespace pmaptrain::ops
