#include <limits>

#include "core/ops/max_pool/max_pool.h"
#include "core/ops/max_pool/simd.h"

namespace pmaptrain::ops {

#ifdef PMAPTRAIN_REFERENCE_KERNELS

std::unique_ptr<CpuKernel> MaxPool::cpu(const CpuRequest&) const { return nullptr; }
std::unique_ptr<CpuKernel> MaxPoolGrad::cpu(const CpuRequest&) const { return nullptr; }

#else

namespace {

// Calls run(arguments, device) for each device in turn, or once where the images of all devices are one batch.
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

// The images of all devices where all operands are stacked: a window's result does not depend on other images.
std::int64_t merge(const CpuRequest& request, PoolGeometry& g) {
  for (const bool stacked : request.stacked) {
    if (!stacked) return request.devices;
  }
  g.n *= request.devices;
  return 1;
}

}  // namespace

std::unique_ptr<CpuKernel> MaxPool::cpu(const CpuRequest& request) const {
  if (request.results[0].dtype != DType::f32) return nullptr;
  PoolGeometry g = pool_geometry(name, request.operands[0].shape, window, strides, padding);
  const std::int64_t calls = merge(request, g);
  const std::int64_t x_stride = request.stacked[0] ? numel(g.x_shape()) : 0, y_stride = numel(g.y_shape());
  const auto run = [=](const CpuArguments& a, std::int64_t call) {
    max_pool_simd(g, slice<float>(a.operands[0], call, x_stride), slice<float>(a.results[0], call, y_stride));
  };
  return std::make_unique<PoolKernel<decltype(run)>>(calls, run);
}

std::unique_ptr<CpuKernel> MaxPoolGrad::cpu(const CpuRequest& request) const {
  if (request.results[0].dtype != DType::f32) return nullptr;
  PoolGeometry g = pool_geometry(name, request.operands[0].shape, window, strides, padding);
  if (g.h.window * g.w.window > std::numeric_limits<std::int32_t>::max()) return nullptr;  // taps have 32 bits
  const std::int64_t calls = merge(request, g);
  const std::int64_t dx_stride = numel(g.x_shape()), x_stride = request.stacked[0] ? dx_stride : 0;
  const std::int64_t dy_stride = request.stacked[1] ? numel(g.y_shape()) : 0;
  const auto run = [=, masked = relu](const CpuArguments& a, std::int64_t call) {
    max_pool_grad_simd(g, slice<float>(a.operands[0], call, x_stride), slice<float>(a.operands[1], call, dy_stride),
                       slice<float>(a.results[0], call, dx_stride), masked);
  };
  return std::make_unique<PoolKernel<decltype(run)>>(calls, run);
}

#endif  // PMAPTRAIN_REFERENCE_KERNELS

}  // namespace pmaptrain::ops
