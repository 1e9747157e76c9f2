#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include "core/ops/conv/taps.h"

#include <cstring>

#include "core/ops/all.h"
#include "core/ops/matmul/matmul.h"

namespace pmaptrain::ops {
namespace {

// A tap meets one pixel of x, or padding, at each pixel of dy. With the pixels of x as rows of a matrix, the tap's
// gradient, which is a matrix of channels in and out, is that matrix, transposed, times the matrix of dy's pixels.
class KernelGradOfTaps final : public CpuKernel {
 public:
  KernelGradOfTaps(const CpuRequest& request, const ConvGeometry& g)
      : g_(g), devices_(request.devices), stacked_(request.stacked) {
    const std::int64_t pixels = numel(g.y_shape()) / g.o;
    const Type operands[] = {{DType::bf16, {pixels, g.c}, {}}, {DType::bf16, {pixels, g.o}, {}}};
    const Type result{request.results[0].dtype, {g.c, g.o}, {}};
    Matmul product;
    product.transpose_a = true;
    if (result.dtype != DType::bf16) product.preferred_element_type = result.dtype;
    product_ = make_cpu_kernel(product, {operands, {&result, 1}, 1, {true, true}}, KernelChoice::best);
    rows_ = static_cast<std::size_t>(numel(operands[0].shape)) * sizeof(bf16);
    rows_ = (rows_ + 63) / 64 * 64;
    gradient_ = static_cast<std::size_t>(numel(result.shape)) * size_of(result.dtype);
  }

  void run(const CpuArguments& arguments) override {
    const std::int64_t x = numel(g_.x_shape()), y = numel(g_.y_shape());
    std::byte* to = arguments.results[0];
    for (std::int64_t d = 0; d < devices_; ++d) {
      const std::byte* const of_x = arguments.operands[0] + size_of_bf16(stacked_[0] ? d * x : 0);
      const std::byte* const of_y = arguments.operands[1] + size_of_bf16(stacked_[1] ? d * y : 0);
      for (std::int64_t i = 0; i < g_.h.window; ++i) {
        for (std::int64_t j = 0; j < g_.w.window; ++j, to += gradient_) {
          gather(of_x, i, j, arguments.scratch);
          const std::byte* const operands[] = {arguments.scratch, of_y};
          product_->run({operands, &to, arguments.scratch + rows_});
        }
      }
    }
  }

  std::size_t scratch_bytes() const override { return rows_ + product_->scratch_bytes(); }
  std::string implementation() const override {
    return std::to_string(g_.h.window * g_.w.window) + " taps of " + product_->implementation();
  }
  std::int64_t library_calls() const override {
    return devices_ * g_.h.window * g_.w.window * product_->library_calls();
  }

 private:
  static std::size_t size_of_bf16(std::int64_t count) { return static_cast<std::size_t>(count) * sizeof(bf16); }

  // Copies the pixels of x that the tap (i, j) meets; those of padding are zero.
  void gather(const std::byte* x, std::int64_t i, std::int64_t j, std::byte* to) const {
    const std::size_t pixel = size_of_bf16(g_.c);
    for (std::int64_t n = 0; n < g_.n; ++n) {
      for (std::int64_t row = 0; row < g_.h.out; ++row) {
        const std::int64_t h = g_.h.start(row) + i * g_.h.dilation;
        const bool is_inside = h >= 0 && h < g_.h.in;
        const std::byte* const of_row = x + size_of_bf16(is_inside ? (n * g_.h.in + h) * g_.w.in * g_.c : 0);
        for (std::int64_t column = 0; column < g_.w.out; ++column, to += pixel) {
          const std::int64_t w = g_.w.start(column) + j * g_.w.dilation;
          if (is_inside && w >= 0 && w < g_.w.in) {
            std::memcpy(to, of_row + size_of_bf16(w * g_.c), pixel);
          } else {
            std::memset(to, 0, pixel);
          }
        }
      }
    }
  }

  ConvGeometry g_;
  std::int64_t devices_;
  std::vector<bool> stacked_;
  std::unique_ptr<CpuKernel> product_;
  std::size_t rows_ = 0, gradient_ = 0;  // bytes of the gathered pixels, and of a tap's gradient
};

}  // namespace

bool takes_taps(const ConvGeometry& g) {
  // A pixel that is gathered takes part in as many multiplications as there are channels out. (Measured.)
  constexpr std::int64_t small_image = 16, least_pixels = 256, least_channels = 64;
  const std::int64_t pixels = g.h.out * g.w.out;
  return !g.is_volume && g.groups == 1 && pixels <= small_image && g.n * pixels >= least_pixels &&
         g.c >= least_channels && g.o >= least_channels;
}

std::unique_ptr<CpuKernel> make_kernel_grad_of_taps(const CpuRequest& request, const ConvGeometry& g) {
  return std::make_unique<KernelGradOfTaps>(request, g);
}

}  // namespace pmaptrain::ops

#endif  // PMAPTRAIN_REFERENCE_KERNELS
