#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/kernel/gpu_budget.h"
#include "core/runtime/cuda/kernels.h"
#include "core/runtime/cuda/prepare.h"
#include "core/runtime/cuda/trial.h"

namespace pmaptrain::cuda {
namespace {

using OwnDescription = Handle<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using OwnLayout = Handle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using OwnPreference = Handle<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

template <auto set, class Handle, class Attribute, class Value>
void set_attribute(const Handle& handle, Attribute attribute, const Value& value) {
  check(set(handle.get(), attribute, &value, sizeof value), "describing a matrix product");
}

cudaDataType cublas_type(DType dtype) {
  return dtype == DType::bf16 ? CUDA_R_16BF : dtype == DType::f64 ? CUDA_R_64F : CUDA_R_32F;
}

// What adds up the columns of b, if that is asked for.
enum class ColumnSums : std::uint8_t { by_kernel, by_library };

class MatmulCommand final : public PreparedCommand {
 public:
  MatmulCommand(const GpuMatmul& product, std::string_view op, const GpuRequest& request, cublasLtHandle_t handle,
                Relu relu, ColumnSums column_sums)
      : handle_(handle), product_(product), slices_(request), column_sums_(column_sums) {
    if (product_.bias) bias_ = best_bias(product_);
    if (!empty() && product_.k > 0) choose(op, request, relu);
    if (sums_by_kernel()) {
      column_sums_part_ = parts_.add(column_sums_workspace(product_.operands, product_.k, product_.n));
    }
    if (converts_bias()) converted_bias_ = parts_.add(bias_bytes());
    if (bias_ == Bias::after_f32_sum) {
      const auto elements = static_cast<std::size_t>(result_rows() * product_.n);
      sums_ = parts_.add(elements * sizeof(float));
    }
    library_part_ = parts_.add(library_bytes_);
    workspace_ = parts_.size();
  }

  bool has_library_relu() const override { return library_relu_ && !empty(); }
  void run(cudaStream_t stream, const gpu::LaunchArguments& arguments) override {
    if (product_.places) return run_in_places(stream, arguments);
    for (std::int64_t call = 0; call < product_.calls; ++call) {
      if (sums_by_kernel()) add_up_columns(stream, arguments, call);
      if (!empty()) run_one(stream, arguments, call);
    }
  }

 private:
  // Where the bias is added: by the library, or by a kernel after the library's. The latter reads sums of the type of
  // the result (`after`), or f32 sums from the workspace (`after_f32_sum`).
  enum class Bias : std::uint8_t { none, by_library, after, after_f32_sum };

  // The library reads a bias in the type of the result. So an f32 bias of a bf16 result is rounded before it is added,
  // as in Flax and PyTorch; otherwise f32 sums of the whole result would be written and read once more.
  bool converts_bias() const { return bias_ == Bias::by_library && *product_.bias != product_.result; }
  std::size_t bias_bytes() const { return static_cast<std::size_t>(biases() * product_.n) * size_of(product_.result); }
  std::int64_t biases() const { return product_.bias_stride != 0 ? product_.batch : 1; }  // rows that one call adds

  // The library adds the bias only if the slices that it reads are aligned to 16 bytes: its kernels may read 16 bytes
  // at a time, and no attribute states another alignment.
  static Bias best_bias(const GpuMatmul& p) {
    const bool one_slice = p.batch == 1 || p.bias_stride == 0;
    const bool is_aligned = one_slice || static_cast<std::size_t>(p.n) * size_of(p.result) % 16 == 0;
    return p.result != DType::f64 && is_aligned ? Bias::by_library : bias_after(p);
  }
  static Bias bias_after(const GpuMatmul& p) { return p.result == DType::bf16 ? Bias::after_f32_sum : Bias::after; }

  // Chooses whether the library adds the bias and applies relu, and its algorithm. Tries to leave both to the library,
  // then only the bias, then neither, until the library has an algorithm.
  void choose(std::string_view op, const GpuRequest& request, Relu relu) {
    const GpuMatmul& p = product_;
    const Bias best = bias_;
    std::vector<std::pair<Bias, bool>> ways{{best, false}};
    const bool may_relu = p.relu && relu == Relu::by_library && p.result != DType::f64;
    if (may_relu && (best == Bias::none || best == Bias::by_library)) ways.insert(ways.begin(), {best, true});
    if (best == Bias::by_library) ways.emplace_back(bias_after(p), false);
    cublasStatus_t status = CUBLAS_STATUS_NOT_SUPPORTED;
    for (const auto& [bias, with_relu] : ways) {
      bias_ = bias;
      library_relu_ = with_relu;
      describe(request);
      status = choose_algorithm(request);
      if (status == CUBLAS_STATUS_SUCCESS) return;
    }
    fail_running(fmt::format("GPU: cuBLASLt {} has no algorithm for {} of {} and {} giving {} ({})",
                             cublasLtGetVersion(), op, to_string(request.operands[0].shape),
                             to_string(request.operands[1].shape), to_string(request.results[0].shape),
                             cublasLtGetStatusName(status)));
  }

  std::int64_t result_rows() const { return product_.batch * product_.m; }  // rows that one call computes
  bool empty() const { return product_.m == 0 || product_.n == 0 || product_.batch == 0 || product_.calls == 0; }
  bool sums_by_kernel() const { return product_.column_sums && column_sums_ == ColumnSums::by_kernel; }
  bool sums_by_library() const { return product_.column_sums && column_sums_ == ColumnSums::by_library; }
  DType sum_type() const { return bias_ == Bias::after_f32_sum ? DType::f32 : product_.result; }

  // The library's matrices are column-major, and ours are row-major. So it computes the transpose of the result: its
  // first operand is our b, its second operand our a.
  void describe(const GpuRequest& request) {
    const GpuMatmul& p = product_;
    const bool f64 = p.operands == DType::f64;
    const bool tf32 = p.operands == DType::f32 && request.tf32;
    const cublasComputeType_t compute = f64    ? CUBLAS_COMPUTE_64F
                                        : tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                               : CUBLAS_COMPUTE_32F;
    check(cublasLtMatmulDescCreate(description_.create(), compute, f64 ? CUDA_R_64F : CUDA_R_32F),
          "describing a matrix product");
    const auto describe_with = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
      set_attribute<cublasLtMatmulDescSetAttribute>(description_, attribute, value);
    };
    describe_with(CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    describe_with(CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    const bool bias = bias_ == Bias::by_library;
    describe_with(CUBLASLT_MATMUL_DESC_EPILOGUE, sums_by_library() ? CUBLASLT_EPILOGUE_BGRADA
                                                 : library_relu_
                                                     ? (bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU)
                                                 : bias ? CUBLASLT_EPILOGUE_BIAS
                                                        : CUBLASLT_EPILOGUE_DEFAULT);
    if (bias) {
      describe_with(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<std::int32_t>(cublas_type(p.result)));
      describe_with(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, p.bias_stride);
      // The library's heuristics use nothing of this address but its alignment.
      const std::uintptr_t example = converts_bias() ? 256 : alignment_of(request.operands[2], 256);
      describe_with(CUBLASLT_MATMUL_DESC_BIAS_POINTER, example);
    }
    // The library adds up the rows of its first operand, which is our b. The sums have the type of the result.
    if (sums_by_library()) {
      describe_with(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<std::int32_t>(cublas_type(*p.column_sums)));
      describe_with(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, p.n);
      const std::uintptr_t example = alignment_of(request.results[1], 256);
      describe_with(CUBLASLT_MATMUL_DESC_BIAS_POINTER, example);
    }
    make_layout(first_, p.operands, p.transpose_b ? p.k : p.n, p.transpose_b ? p.n : p.k, p.b_stride);
    const std::int64_t row = p.transpose_a ? p.m : p.k;
    make_layout(second_, p.operands, row, p.transpose_a ? p.k : p.m, p.a_stride, p.places ? p.places->a_row : row);
    make_layout(sum_, sum_type(), p.n, p.m, p.m * p.n);
  }

  void make_layout(OwnLayout& layout, DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
    make_layout(layout, dtype, rows, columns, stride, rows);
  }
  // `next`: elements from one column to the next.
  void make_layout(OwnLayout& layout, DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t stride,
                   std::int64_t next) {
    check(cublasLtMatrixLayoutCreate(layout.create(), cublas_type(dtype), static_cast<std::uint64_t>(rows),
                                     static_cast<std::uint64_t>(columns), next),
          "describing a matrix");
    if (product_.batch == 1) return;
    const auto batch = static_cast<std::int32_t>(product_.batch);
    set_attribute<cublasLtMatrixLayoutSetAttribute>(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, batch);
    set_attribute<cublasLtMatrixLayoutSetAttribute>(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride);
  }

  cublasStatus_t choose_algorithm(const GpuRequest& request) {
    library_bytes_ = matmul_budget;
    if (handle_ == nullptr) return CUBLAS_STATUS_SUCCESS;
    OwnPreference preference;
    check(cublasLtMatmulPreferenceCreate(preference.create()), "describing a matrix product");
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      set_attribute<cublasLtMatmulPreferenceSetAttribute>(preference, attribute, value);
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, matmul_budget);
    // Split-K is allowed only with a reduction in a fixed order (out of place, without atomics), so that products are
    // deterministic.
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           std::uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    const auto aligned = [](const Type& type) { return static_cast<std::uint32_t>(alignment_of(type, 256)); };
    std::uint32_t of_a = aligned(request.operands[0]), of_b = aligned(request.operands[1]);
    std::uint32_t of_result = bias_ == Bias::after_f32_sum ? 256 : aligned(request.results[0]);
    if (const GpuMatmul& p = product_; p.places) {  // places are at whole rows
      of_a = aligned({p.operands, {p.k}, {}});
      of_b = aligned({p.operands, {p.k, p.n}, {}});
      of_result = aligned({p.result, {p.n}, {}});
    }
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, of_b);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, of_a);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, of_result);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, of_result);
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle_, description_.get(), first_.get(), second_.get(), sum_.get(), sum_.get(),
                                       preference.get(), 1, &best, &found);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (found == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
    algorithm_ = best.algo;
    library_bytes_ = best.workspaceSize;
    return CUBLAS_STATUS_SUCCESS;
  }

  void run_one(cudaStream_t stream, const gpu::LaunchArguments& arguments, std::int64_t call) {
    const GpuMatmul& p = product_;
    const std::byte* const bias = p.bias ? slices_.operand(arguments, 2, call) : nullptr;
    std::byte* const result = slices_.result(arguments, 0, call);
    std::byte* const sums = bias_ == Bias::after_f32_sum ? arguments.workspace + sums_ : result;
    if (p.k == 0) {
      const auto elements = static_cast<std::size_t>(result_rows() * p.n);
      check(cudaMemsetAsync(sums, 0, elements * size_of(sum_type()), stream), "a matrix product");
    } else {
      multiply(stream, slices_.operand(arguments, 0, call), slices_.operand(arguments, 1, call),
               sums_by_library() ? slices_.result(arguments, 1, call)
               : converts_bias() ? converted(bias, stream, arguments)
                                 : bias,
               sums, arguments.workspace + library_part_);
    }
    const bool bias_after = p.bias && (bias_ != Bias::by_library || p.k == 0);
    const bool relu_after = p.relu && !library_relu_;
    if (!bias_after && !relu_after) return;
    // The epilogue runs once for each product of the batch if each has a bias of its own, otherwise once for all rows.
    const std::int64_t steps = bias_after ? biases() : 1;
    for (std::int64_t i = 0; i < steps; ++i) {
      const std::int64_t rows = result_rows() / steps;
      const auto at = [&](std::byte* begin, DType dtype) {
        return begin + static_cast<std::size_t>(i * rows * p.n) * size_of(dtype);
      };
      Epilogue rest{{p.result, at(result, p.result)}, {sum_type(), at(sums, sum_type())}, {}, relu_after, rows, p.n};
      if (bias_after) {
        const std::size_t offset = static_cast<std::size_t>(i * p.bias_stride) * size_of(*p.bias);
        rest.bias = {*p.bias, const_cast<std::byte*>(bias) + offset};
      }
      check(apply_epilogue(rest, stream), "adding the bias of a matrix product");
    }
  }

  void run_in_places(cudaStream_t stream, const gpu::LaunchArguments& arguments) {
    const auto at = [&](const GpuArgument& place) {
      return reinterpret_cast<std::byte*>(gpu::value_of(place, arguments));
    };
    const GpuMatmul::Places& places = *product_.places;
    if (empty()) return;
    multiply(stream, at(places.a), at(places.b), nullptr, at(places.result), arguments.workspace + library_part_);
  }

  void add_up_columns(cudaStream_t stream, const gpu::LaunchArguments& arguments, std::int64_t call) const {
    const GpuMatmul& p = product_;
    for (std::int64_t i = 0; i < p.batch; ++i) {
      const std::byte* const b =
          slices_.operand(arguments, 1, call) + static_cast<std::size_t>(i * p.b_stride) * size_of(p.operands);
      std::byte* const to =
          slices_.result(arguments, 1, call) + static_cast<std::size_t>(i * p.n) * size_of(*p.column_sums);
      check(column_sums({*p.column_sums, to}, {p.operands, const_cast<std::byte*>(b)}, p.k, p.n,
                        arguments.workspace + column_sums_part_, stream),
            "the gradient of a bias");
    }
  }

  const std::byte* converted(const std::byte* bias, cudaStream_t stream, const gpu::LaunchArguments& arguments) const {
    std::byte* const to = arguments.workspace + converted_bias_;
    check(convert({product_.result, to}, {*product_.bias, const_cast<std::byte*>(bias)}, biases() * product_.n, stream),
          "the bias of a matrix product");
    return to;
  }

  // `bias` is what the library adds, or where it writes the sums of columns.
  void multiply(cudaStream_t stream, const std::byte* a, const std::byte* b, const std::byte* bias, std::byte* sums,
                std::byte* workspace) {
    if (bias_ == Bias::by_library || sums_by_library()) {
      set_attribute<cublasLtMatmulDescSetAttribute>(description_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    }
    const float one = 1, zero = 0;
    const double one_f64 = 1, zero_f64 = 0;
    const bool f64 = product_.operands == DType::f64;
    check(cublasLtMatmul(handle_, description_.get(), f64 ? static_cast<const void*>(&one_f64) : &one, b, first_.get(),
                         a, second_.get(), f64 ? static_cast<const void*>(&zero_f64) : &zero, sums, sum_.get(), sums,
                         sum_.get(), &algorithm_, workspace, library_bytes_, stream),
          "a matrix product");
  }

  cublasLtHandle_t handle_;
  GpuMatmul product_;
  Slices slices_;
  ColumnSums column_sums_;
  Bias bias_ = Bias::none;
  bool library_relu_ = false;
  OwnDescription description_;
  OwnLayout first_, second_, sum_;  // layouts of our b, of our a and of the result
  cublasLtMatmulAlgo_t algorithm_{};
  WorkspaceLayout parts_;
  std::size_t converted_bias_ = 0, sums_ = 0, column_sums_part_ = 0, library_part_ = 0, library_bytes_ = 0;
};

// Whether the library may add up columns: in an order that it does not document, to the type of the result, and to
// slices that are aligned as those of a bias.
bool may_sum_by_library(const GpuMatmul& p, const GpuRequest& request) {
  return p.column_sums == p.result && p.result != DType::f64 && !request.deterministic && p.m > 0 && p.n > 0 &&
         p.k > 1 && alignment_of(request.results[1], 16) == 16;
}

}  // namespace

std::unique_ptr<PreparedCommand> prepare_matmul(const GpuMatmul& product, std::string_view op,
                                                const GpuRequest& request, cublasLtHandle_t handle,
                                                gpu::TimedChoices* choices, Relu relu) {
  if (!is_floating(product.operands)) {
    fail_running(fmt::format("GPU: {} of {} is not supported", op, to_string(product.operands)));
  }
  const auto with = [&](ColumnSums by) {
    return std::make_unique<MatmulCommand>(product, op, request, handle, relu, by);
  };
  if (choices == nullptr || !may_sum_by_library(product, request)) return with(ColumnSums::by_kernel);
  std::vector<Candidate> candidates;
  candidates.push_back({"sums of columns by a kernel", with(ColumnSums::by_kernel)});
  try {
    candidates.push_back({"sums of columns by the library", with(ColumnSums::by_library)});
  } catch (const Error&) {
    return std::move(candidates.front().command);  // the library has no algorithm for both
  }
  const std::string purpose =
      fmt::format("{}, cuBLASLt {}: product of {} {} and {} giving {}, {} products, strides {} {}, TF32 {}",
                  name_of_gpu(), cublasLtGetVersion(), to_string(product.operands),
                  to_string(request.operands[0].shape), to_string(request.operands[1].shape), to_string(product.result),
                  product.batch, product.a_stride, product.b_stride, request.tf32);
  return fastest_of(std::move(candidates), purpose, request, *choices);
}

}  // namespace pmaptrain::cuda
