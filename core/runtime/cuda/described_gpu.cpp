#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/runtime/cuda/libraries.h"

namespace pmaptrain::cuda {
namespace {

class DescribedKernels final : public gpu::KernelPreparer {
 public:
  explicit DescribedKernels(Libraries libraries) : libraries_(std::move(libraries)) {}

  void begin_preparing(const Op& op, const GpuRequest& request, const GpuKernel& kernel) override {
    libraries_.begin_preparing(op, request, kernel);
  }
  gpu::PreparedKernel prepare(const Op& op, const GpuRequest& request, const GpuKernel& kernel) override {
    // On a real GPU, the first variant whose relu keeps NaNs is used. Which one that is cannot be known here, so this
    // returns the maximum of the workspaces.
    std::size_t workspace = 0;
    bool own = false;
    for (const Relu relu : relu_variants) {
      const Kernel tried = libraries_.prepare(op, request, kernel, relu);
      workspace = std::max(workspace, tried.workspace());
      own = tried.is_own();
      if (!tried.has_library_relu()) break;
    }
    return {-1, workspace, own};
  }

 private:
  Libraries libraries_;
};

}  // namespace

gpu::DescribedGpu describe_gpu(const std::string& description, GenerateSource generate_source) {
  const auto json = nlohmann::json::parse(description, nullptr, false);
  if (!json.is_object() || !json.contains("deviceVer")) {
    fail_running("GPU: the description of a device is no JSON object with a deviceVer");
  }
  gpu::DescribedGpu gpu;
  gpu.properties.name = json.value("deviceName", "");
  gpu.properties.compute_capability = json.value("deviceVer", 0) / 10;  // 900 means 9.0
  gpu.properties.memory = json.value("totalGlobalMem", std::size_t{0});
  gpu.properties.driver = json.value("driverVer", 0);
  gpu.kernels = std::make_unique<DescribedKernels>(Libraries(gpu.properties.compute_capability, generate_source,
                                                             std::make_shared<Shared>(), description,
                                                             json.value("plansAttention", false)));  // tests ask for it
  return gpu;
}

}  // namespace pmaptrain::cuda
