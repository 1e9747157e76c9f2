#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include "core/ops/conv/depthwise.h"

#include <algorithm>

#include "core/ops/conv/depthwise_simd.h"

namespace pmaptrain::ops {
namespace {

// The number of floats of one device's array, and of one image in it.
struct Part {
  std::int64_t device = 0, image = 0;

  Part(const Shape& shape, bool stacked) : device(stacked ? numel(shape) : 0), image(numel(shape) / shape[0]) {}
};

// Calls run(arguments, device, scratch) for each device in turn. If the result has more channels than the image, the
// scratch memory holds one image with the result's channels.
template <class Body>
class DepthwiseKernel final : public CpuKernel {
 public:
  DepthwiseKernel(const CpuRequest& request, const ConvGeometry& g, Body run)
      : devices_(request.devices),
        scratch_(g.o == g.c ? 0 : static_cast<std::size_t>(g.h.in * g.w.in * g.o) * sizeof(float)),
        run_(std::move(run)) {}

  void run(const CpuArguments& arguments) override {
    for (std::int64_t d = 0; d < devices_; ++d) run_(arguments, d, reinterpret_cast<float*>(arguments.scratch));
  }
  std::size_t scratch_bytes() const override { return scratch_; }
  std::string implementation() const override { return "depthwise by vectors of channels"; }

 private:
  std::int64_t devices_;
  std::size_t scratch_;
  Body run_;
};

template <class Body>
std::unique_ptr<CpuKernel> depthwise_kernel(const CpuRequest& request, const ConvGeometry& g, Body run) {
  return std::make_unique<DepthwiseKernel<Body>>(request, g, std::move(run));
}

const float* operand_floats(const CpuArguments& arguments, std::size_t i) {
  return reinterpret_cast<const float*>(arguments.operands[i]);
}
float* result_floats(const CpuArguments& arguments, std::size_t i) {
  return reinterpret_cast<float*>(arguments.results[i]);
}

DepthwisePass pass_to_y(const ConvGeometry& g) {
  return {runs_to_positions(g.h), runs_to_positions(g.w), g.w.in, g.w.out, g.w.window, g.o};
}

DepthwisePass pass_to_x(const ConvGeometry& g) {
  return {runs_to_elements(g.h), runs_to_elements(g.w), g.w.out, g.w.in, g.w.window, g.o};
}

// An image of x in which each channel is repeated for each of its results.
const float* widened(const float* x, std::int64_t size, std::int64_t times, float* scratch) {
  if (times == 1) return x;
  repeat_elements(static_cast<std::size_t>(size), static_cast<std::size_t>(times), x, scratch);
  return scratch;
}

}  // namespace

bool takes_depthwise(const ConvGeometry& g, bool gradient) {
  const bool depthwise = g.groups > 1 && g.c_of_group() == 1, dilated = g.h.dilation > 1 || g.w.dilation > 1;
  return !g.is_volume && g.n > 0 && g.o > 0 && depthwise && (g.o_of_group() > 1 || (gradient && dilated));
}

std::unique_ptr<CpuKernel> make_depthwise(const CpuRequest& request, const ConvGeometry& g, bool relu) {
  const Part x(g.x_shape(), request.stacked[0]), y(g.y_shape(), true);
  const std::int64_t kernel_stride = request.stacked[1] ? numel(g.kernel_shape()) : 0;
  const bool with_bias = request.operands.size() == 3;
  const std::int64_t bias_stride = with_bias && request.stacked[2] ? g.o : 0;
  return depthwise_kernel(
      request, g,
      [=, n = g.n, times = g.o_of_group(), pass = pass_to_y(g)](const CpuArguments& a, std::int64_t d, float* scratch) {
        const float* const bias = with_bias ? operand_floats(a, 2) + d * bias_stride : nullptr;
        for (std::int64_t i = 0; i < n; ++i) {
          const float* const from = operand_floats(a, 0) + d * x.device + i * x.image;
          depthwise_sums(pass, widened(from, x.image, times, scratch), operand_floats(a, 1) + d * kernel_stride, bias,
                         relu, result_floats(a, 0) + d * y.device + i * y.image);
        }
      });
}

std::unique_ptr<CpuKernel> make_depthwise_input_grad(const CpuRequest& request, const ConvGeometry& g) {
  const Part dx(g.x_shape(), true), dy(g.y_shape(), request.stacked[1]);
  const std::int64_t kernel_stride = request.stacked[0] ? numel(g.kernel_shape()) : 0;
  return depthwise_kernel(
      request, g,
      [=, n = g.n, times = g.o_of_group(), pass = pass_to_x(g)](const CpuArguments& a, std::int64_t d, float* scratch) {
        for (std::int64_t i = 0; i < n; ++i) {
          float* const to = result_floats(a, 0) + d * dx.device + i * dx.image;
          depthwise_sums(pass, operand_floats(a, 1) + d * dy.device + i * dy.image,
                         operand_floats(a, 0) + d * kernel_stride, nullptr, false, times == 1 ? to : scratch);
          if (times == 1) continue;
          add_neighbours(static_cast<std::size_t>(dx.image), static_cast<std::size_t>(times), scratch, to);
        }
      });
}

std::unique_ptr<CpuKernel> make_depthwise_kernel_grad(const CpuRequest& request, const ConvGeometry& g) {
  const Part x(g.x_shape(), request.stacked[0]), dy(g.y_shape(), request.stacked[1]);
  const std::int64_t size = numel(g.kernel_shape());
  return depthwise_kernel(
      request, g,
      [=, n = g.n, times = g.o_of_group(), pass = pass_to_y(g)](const CpuArguments& a, std::int64_t d, float* scratch) {
        float* const dkernel = result_floats(a, 0) + d * size;
        std::fill_n(dkernel, size, 0.0F);
        for (std::int64_t i = 0; i < n; ++i) {
          const float* const from = operand_floats(a, 0) + d * x.device + i * x.image;
          depthwise_kernel_sums(pass, widened(from, x.image, times, scratch),
                                operand_floats(a, 1) + d * dy.device + i * dy.image, dkernel);
        }
      });
}

}  // namespace pmaptrain::ops

#endif  // PMAPTRAIN_REFERENCE_KERNELS
