// Prepares kernels for one device: the project's own kernels, and those of NVRTC, cuBLASLt and cuDNN. Each library is
// initialized when it is first needed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/runtime/cuda/compiler.h"
#include "core/runtime/cuda/conv_plan.h"
#include "core/runtime/cuda/launch.h"
#include "core/runtime/cuda/matmul.h"
#include "core/runtime/cuda/work.h"
#include "core/runtime/gpu/module_table.h"

namespace pmaptrain::cuda {

using Generate = decltype(gpu::ModuleOptions::generate);

// The commands of a kernel, in order. They use the same workspace one after another.
class Kernel {
 public:
  explicit Kernel(std::vector<std::unique_ptr<Work>> commands);
  void run(cudaStream_t stream, const gpu::Arguments& arguments) const;
  std::size_t workspace() const { return workspace_; }
  bool has_library_relu() const;

 private:
  std::vector<std::unique_ptr<Work>> commands_;
  std::size_t workspace_ = 0;
};

class Libraries {
 public:
  // For the current device. All devices of a platform share one compiler.
  Libraries(int compute_capability, Generate generate, std::shared_ptr<Compiler> compiler);
  // For a device that is only described, as cuDNN's JSON. The kernels cannot run.
  Libraries(int compute_capability, Generate generate, std::shared_ptr<Compiler> compiler,
            const std::string& properties);

  // Starts compilation in the background for a later call of prepare().
  void begin(const Op& op, const GpuRequest& request, const GpuKernel& kernel);
  Kernel prepare(const Op& op, const GpuRequest& request, const GpuKernel& kernel, Relu relu = Relu::by_library);

 private:
  std::unique_ptr<Work> make(const GpuLaunch& launch, const Op& op, const GpuRequest& request, Relu relu);
  std::unique_ptr<Work> make(const GpuMatmul& product, const Op& op, const GpuRequest& request, Relu relu);
  std::unique_ptr<Work> make(const GpuConv& conv, const Op& op, const GpuRequest& request, Relu relu);
  std::unique_ptr<Work> make(const GpuGenerated& generated, const Op& op, const GpuRequest& request, Relu relu);
  gpu::Generated generated_for(const Op& op, const GpuRequest& request) const;

  int compute_capability_;
  Generate generate_;
  std::shared_ptr<Compiler> compiler_;
  RunsOn runs_on_ = RunsOn::device;
  CublasHandle cublas_;
  OwnConvPlanner convolutions_;
};

}  // namespace pmaptrain::cuda
