// Platforms: the GPUs of the machine, or several virtual devices on one GPU; and the table of this library.
#include <fmt/format.h>

#include <cstdlib>

#include "core/base/error.h"
#include "core/runtime/cuda/device.h"

namespace pmaptrain::cuda {
namespace {

// CUDA's number of a version as text, for example 13000 as "13.0".
std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

int count_gpus() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return count;
  cudaGetLastError();
  int driver = 0;
  cudaDriverGetVersion(&driver);
  if (status == cudaErrorInsufficientDriver && driver != 0) {
    fail_resource(fmt::format("the NVIDIA driver is for CUDA {} at most, and this build needs CUDA {}",
                              version_text(driver), version_text(CUDART_VERSION)),
                  "install a newer NVIDIA driver");
  }
  if (driver == 0) {
    fail_resource("there is no NVIDIA driver", "install the driver of the GPU; in a container, start it with its GPUs");
  }
  if (status == cudaSuccess || status == cudaErrorNoDevice) {
    const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
    fail_resource("the NVIDIA driver finds no GPU", visible == nullptr
                                                        ? "`nvidia-smi` lists the GPUs"
                                                        : fmt::format("CUDA_VISIBLE_DEVICES is '{}'", visible));
  }
  fail_resource(fmt::format("the NVIDIA driver does not start: {}", cudaGetErrorString(status)),
                "`nvidia-smi` says more; a restart of the machine often helps after an update of the driver");
}

gpu::Properties properties_of(int gpu) {
  cudaDeviceProp all{};
  check(cudaGetDeviceProperties(&all, gpu), fmt::format("asking for the properties of GPU {}", gpu));
  gpu::Properties properties{all.name, all.major * 10 + all.minor, all.totalGlobalMem, 0, {}};
  check(cudaDriverGetVersion(&properties.driver), "asking for the driver's version");
  return properties;
}

// Must be called before the first call of NCCL, which reads these environment variables only once.
void set_environment_of_nccl() {
  // Collectives of several communicators on one device run in the order of their calls.
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);
  // NCCL connects the ranks when a communicator is created, not at the first collective. Connecting allocates memory
  // and waits for other ranks, which must not happen while a GPU is busy.
  setenv("NCCL_RUNTIME_CONNECT", "0", 0);
}

class CudaPlatform final : public gpu::Platform {
 public:
  CudaPlatform(GenerateSource generate_source, const HostPlace& place)
      : generate_source_(generate_source), own_(gpu::gpus_of_process(count_gpus(), place)) {}

  int devices() const override { return own_.count; }
  gpu::Properties properties(int device) const override {
    gpu::Properties properties = properties_of(own_.first + device);
    for (int other = 0; other < own_.count; ++other) {
      int reached = 0;
      if (other == device) continue;
      check(cudaDeviceCanAccessPeer(&reached, own_.first + device, own_.first + other),
            "asking which GPUs reach one another");
      if (reached != 0) properties.peers.push_back(other);
    }
    return properties;
  }
  std::string description(int device) const override { return properties_for_planning(own_.first + device); }
  std::unique_ptr<gpu::Device> open(int device, int module, const gpu::GpuRange& ranks) override {
    const gpu::GpuRange here{ranks.first, ranks.count > 0 ? ranks.count : own_.count};
    const auto join = [=, this](std::span<const int> members, const gpu::CommunicatorId* id, const Abort& abort) {
      return join_nccl(here.first + device, here, module, communicators_, members, id, abort);
    };
    return std::make_unique<CudaDevice>(device, module, own_.first + device, generate_source_, shared_, join,
                                        barriers_);
  }
  gpu::CommunicatorId new_communicator_id() override { return new_nccl_id(); }

 private:
  GenerateSource generate_source_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  const gpu::GpuRange own_;
  NcclGroups communicators_;
  Barriers barriers_;
};

class VirtualPlatform final : public gpu::Platform {
 public:
  VirtualPlatform(GenerateSource generate_source, int devices) : generate_source_(generate_source), devices_(devices) {
    count_gpus();
  }

  int devices() const override { return devices_; }
  gpu::Properties properties(int device) const override {
    gpu::Properties properties = properties_of(0);
    properties.memory /= static_cast<std::size_t>(devices_);
    for (int other = 0; other < devices_; ++other) {
      if (other != device) properties.peers.push_back(other);
    }
    return properties;
  }
  std::string description(int) const override { return properties_for_planning(0); }
  std::unique_ptr<gpu::Device> open(int device, int module, const gpu::GpuRange& /*ranks*/) override {
    const auto join = [=, this](std::span<const int> members, const gpu::CommunicatorId*, const Abort& abort) {
      return join_virtual(device, module, communicators_, members, abort);
    };
    return std::make_unique<CudaDevice>(device, module, 0, generate_source_, shared_, join, barriers_);
  }
  gpu::CommunicatorId new_communicator_id() override { fail_running("virtual GPUs are those of one process"); }

 private:
  GenerateSource generate_source_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  int devices_;
  VirtualGroups communicators_;
  Barriers barriers_;
};

std::unique_ptr<gpu::Platform> open_platform(const gpu::ModuleOptions& options) {
  if (options.virtual_devices > 0)
    return std::make_unique<VirtualPlatform>(options.generate_source, options.virtual_devices);
  set_environment_of_nccl();
  return std::make_unique<CudaPlatform>(options.generate_source, options.place);
}

}  // namespace
}  // namespace pmaptrain::cuda

// This must not throw: when the program calls it, it does not know yet whether the library has the same interface.
extern "C" __attribute__((visibility("default"))) const pmaptrain::gpu::ModuleTable* pmaptrain_cuda() {
  static constexpr pmaptrain::gpu::ModuleTable table{pmaptrain::gpu::module_abi, pmaptrain::cuda::open_platform,
                                                     pmaptrain::cuda::describe_gpu};
  return &table;
}
