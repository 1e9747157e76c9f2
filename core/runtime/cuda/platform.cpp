#include "core/runtime/cuda/platform.h"

#include <fmt/format.h>

#include <cstdlib>

#include "core/base/error.h"
#include "core/runtime/cuda/conv_plan.h"
#include "core/runtime/cuda/device.h"
#include "core/runtime/cuda/nccl_collectives.h"
#include "core/runtime/cuda/virtual_collectives.h"
#include "core/runtime/gpu/environment.h"

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
      : generate_source_(generate_source), own_(gpu::gpus_of_process(count_gpus(), place)) {
    // With one GPU all collectives are in graphs, and NCCL need not order them after collectives outside of graphs.
    if (captures_collectives()) setenv("NCCL_GRAPH_MIXING_SUPPORT", "0", 0);
  }

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
  std::unique_ptr<gpu::Device> open(int device, int module, const gpu::RanksHere& ranks) override {
    const auto make_collectives = [this, device, module, ranks](const Abort& abort) {
      const gpu::RanksHere here{ranks.first, ranks.count > 0 ? ranks.count : own_.count};
      return make_nccl_collectives(here.first + device, here, module, communicators_, abort, captures_collectives());
    };
    return std::make_unique<CudaDevice>(device, module, own_.first + device, generate_source_, compiler_,
                                        make_collectives, barriers_);
  }
  gpu::CommunicatorId new_communicator_id() override { return new_nccl_id(); }

 private:
  bool captures_collectives() const { return own_.count == 1; }

  GenerateSource generate_source_;
  const std::shared_ptr<Compiler> compiler_ = std::make_shared<Compiler>();
  const gpu::GpusOfProcess own_;
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
  std::unique_ptr<gpu::Device> open(int device, int module, const gpu::RanksHere& /*ranks*/) override {
    const auto make_collectives = [this, device, module](const Abort& abort) {
      return make_virtual_collectives(device, module, communicators_, abort);
    };
    return std::make_unique<CudaDevice>(device, module, 0, generate_source_, compiler_, make_collectives, barriers_);
  }
  gpu::CommunicatorId new_communicator_id() override { fail_running("virtual GPUs are those of one process"); }

 private:
  GenerateSource generate_source_;
  const std::shared_ptr<Compiler> compiler_ = std::make_shared<Compiler>();
  int devices_;
  VirtualGroups communicators_;
  Barriers barriers_;
};

}  // namespace

std::unique_ptr<gpu::Platform> open_platform(const gpu::ModuleOptions& options) {
  if (!options.planned_for.empty()) return open_compile_only_platform(options);
  if (options.virtual_devices > 0)
    return std::make_unique<VirtualPlatform>(options.generate_source, options.virtual_devices);
  set_environment_of_nccl();
  return std::make_unique<CudaPlatform>(options.generate_source, options.place);
}

gpu::LibrarySettings settings() {
  gpu::LibrarySettings all{communicator_config().blocking == 1, {}};
  for (std::size_t i = 0; i < all.priorities.size(); ++i) {
    all.priorities[i] = priority_of(static_cast<gpu::Stream>(i), 0, -5);
  }
  return all;
}

}  // namespace pmaptrain::cuda

// This must not throw: when the program calls it, it does not know yet whether the library has the same interface.
extern "C" __attribute__((visibility("default"))) const pmaptrain::gpu::ModuleTable* pmaptrain_cuda() {
  static constexpr pmaptrain::gpu::ModuleTable table{pmaptrain::gpu::module_abi, pmaptrain::cuda::open_platform,
                                                     pmaptrain::cuda::settings};
  return &table;
}
