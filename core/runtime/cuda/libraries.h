// What makes kernels ready for one device: the project's kernels, NVRTC, cuBLASLt and cuDNN, each started when it is
// first needed.
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

// The commands of a kernel, in order. Each has the whole workspace while it runs.
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
  // Of the current device. The devices of a platform have one compiler.
  Libraries(int compute_capability, Generate generate, std::shared_ptr<Compiler> compiler);
  // Of a device that is only described, by cuDNN's JSON: kernels that do not run.
  Libraries(int compute_capability, Generate generate, std::shared_ptr<Compiler> compiler,
            const std::string& properties);

  // Begins to compile what prepare() will be called with.
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
