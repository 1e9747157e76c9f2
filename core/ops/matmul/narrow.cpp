#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include "core/ops/matmul/narrow.h"

#include "core/kernel/vector_product.h"
#include "core/ops/support/epilogue.h"

namespace pmaptrain::ops {
namespace {

class NarrowKernel final : public CpuKernel {
 public:
  NarrowKernel(const Matmul& op, const CpuRequest& request)
      : rows_(request.operands[0].shape[0]),
        narrow_(static_cast<std::size_t>(request.operands[0].shape[1])),
        sums_rows_(op.transpose_a),
        relu_(op.relu),
        with_bias_(request.operands.size() == 3),
        calls_(request.devices) {
    // The result of a row does not depend on other rows, so the rows of several devices are one matrix.
    if (!sums_rows_ && request.stacked[0] && !request.stacked[1] && !(with_bias_ && request.stacked[2])) {
      rows_ *= calls_;
      calls_ = 1;
    }
    for (std::size_t i = 0; i < request.operands.size(); ++i) {
      strides_[i] = request.stacked[i] ? bytes(request.operands[i]) : 0;
    }
    result_stride_ = bytes(request.results[0]);
  }

  void run(const CpuArguments& arguments) override {
    for (std::int64_t call = 0; call < calls_; ++call) {
      const auto c = static_cast<std::size_t>(call);
      const auto operand = [&](std::size_t i) {
        return reinterpret_cast<const float*>(arguments.operands[i] + c * strides_[i]);
      };
      float* const result = reinterpret_cast<float*>(arguments.results[0] + c * result_stride_);
      const auto rows = static_cast<std::size_t>(rows_);
      if (sums_rows_) {
        narrow_.weighted_sum(rows, operand(0), operand(1), result);
      } else {
        narrow_.times(rows, operand(0), operand(1), with_bias_ ? operand(2) : nullptr, result);
      }
      if (relu_) add_bias_and_relu<float>(rows_, 1, nullptr, true, result);
    }
  }

  std::string implementation() const override { return "vectors"; }

 private:
  std::int64_t rows_;
  NarrowRows narrow_;
  bool sums_rows_, relu_, with_bias_;
  std::int64_t calls_;
  std::size_t strides_[3] = {};  // distances in bytes between the operands of successive calls
  std::size_t result_stride_ = 0;
};

}  // namespace

std::unique_ptr<CpuKernel> make_narrow_kernel(const Matmul& op, const CpuRequest& request) {
  const Type& a = request.operands[0];
  const Type& c = request.results[0];
  const auto width = static_cast<std::size_t>(a.shape[1]);
  if (a.dtype != DType::f32 || c.shape[1] != 1 || width < 1 || width > NarrowRows::widest) return nullptr;
  if (op.transpose_a && (op.relu || request.operands.size() == 3)) return nullptr;
  return std::make_unique<NarrowKernel>(op, request);
}

}  // namespace pmaptrain::ops

#endif  // PMAPTRAIN_REFERENCE_KERNELS
