#include <limits>

#include "core/ops/max_pool/max_pool.h"
#include "core/ops/max_pool/simd.h"

namespace pmaptrain::ops {

#ifdef PMAPTRAIN_REFERENCE_KERNELS

std::unique_ptr<CpuKernel> MaxPool::cpu(const CpuRequest&) const { return nullptr; }
std::unique_ptr<CpuKernel> MaxPoolGrad::cpu(const CpuRequest&) const { return nullptr; }

#else

namespace {

// Calls run(arguments, device) for each device in turn, or once if the images of all devices form one batch.
template <class Run>
class PoolKernel final : public CpuKernel {
 public:
  PoolKernel(std::int64_t calls, Run run) : calls_(calls), run_(run) {}

  void run(const CpuArguments& arguments) override {
    for (std::int64_t call = 0; call < calls_; ++call) run_(arguments, call);
  }
  std::string implementation() const override { return "pooling by vectors of channels"; }

 private:
  std::int64_t calls_;
  Run run_;
};

template <class T>
T* slice(std::byte* data, std::int64_t call, std::int64_t elements) {
  return reinterpret_cast<T*>(data) + call * elements;
}
template <class T>
const T* slice(const std::byte* data, std::int64_t call, std::int64_t elements) {
  return reinterpret_cast<const T*>(data) + call * elements;
}

// If all operands are stacked, the images of all devices form one batch, because images are independent.
std::int64_t merge(const CpuRequest& request, PoolGeometry& g) {
  for (const bool stacked : request.stacked) {
    if (!stacked) return request.devices;
  }
  g.n *= request.devices;
  return 1;
}

// `run` for elements of this type; null if there is no vectorized version.
template <class Run>
std::unique_ptr<CpuKernel> kernel_of(DType dtype, std::int64_t calls, const Run& run) {
  const auto make = [&]<class T>() -> std::unique_ptr<CpuKernel> {
    const auto of_type = [run](const CpuArguments& a, std::int64_t call) { run.template operator()<T>(a, call); };
    return std::make_unique<PoolKernel<decltype(of_type)>>(calls, of_type);
  };
  if (dtype == DType::bf16) return make.template operator()<bf16>();
  return dtype == DType::f32 ? make.template operator()<float>() : nullptr;
}

}  // namespace

std::unique_ptr<CpuKernel> MaxPool::cpu(const CpuRequest& request) const {
  PoolGeometry g = pool_geometry(name, request.operands[0].shape, window, strides, padding);
  const std::int64_t calls = merge(request, g);
  const std::int64_t x_stride = request.stacked[0] ? numel(g.x_shape()) : 0, y_stride = numel(g.y_shape());
  return kernel_of(request.operands[0].dtype, calls, [=]<class T>(const CpuArguments& a, std::int64_t call) {
    max_pool_simd(g, slice<T>(a.operands[0], call, x_stride), slice<T>(a.results[0], call, y_stride));
  });
}

std::unique_ptr<CpuKernel> MaxPoolGrad::cpu(const CpuRequest& request) const {
  PoolGeometry g = pool_geometry(name, request.operands[0].shape, window, strides, padding);
  if (g.h.window * g.w.window > std::numeric_limits<std::int32_t>::max()) return nullptr;  // taps have 32 bits
  const DType dtype = request.operands[0].dtype;
  if (dtype == DType::bf16 && !windows_are_apart(g)) return nullptr;
  const std::int64_t calls = merge(request, g);
  const std::int64_t dx_stride = numel(g.x_shape()), x_stride = request.stacked[0] ? dx_stride : 0;
  const std::int64_t dy_stride = request.stacked[1] ? numel(g.y_shape()) : 0;
  return kernel_of(dtype, calls, [=, masked = relu]<class T>(const CpuArguments& a, std::int64_t call) {
    max_pool_grad_simd(g, slice<T>(a.operands[0], call, x_stride), slice<T>(a.operands[1], call, dy_stride),
                       slice<T>(a.results[0], call, dx_stride), masked);
  });
}

#endif  // PMAPTRAIN_REFERENCE_KERNELS

}  // namespace pmaptrain::ops
