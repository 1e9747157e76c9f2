// Prepares kernels for one device: this project's own kernels, kernels that NVRTC compiles, and kernels of cuBLASLt and
// cuDNN. Each library is initialized when it is first needed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/runtime/cuda/compiler.h"
#include "core/runtime/cuda/prepare.h"
#include "core/runtime/gpu/module_table.h"
#include "core/runtime/gpu/timed_choice.h"

namespace pmaptrain::cuda {

using GenerateSource = decltype(gpu::ModuleOptions::generate_source);

// A GpuKernel, prepared for a device: its commands, in order. They use the same workspace in turn.
class Kernel {
 public:
  explicit Kernel(std::vector<std::unique_ptr<PreparedCommand>> commands, bool is_own = false);
  void run(cudaStream_t stream, const gpu::LaunchArguments& arguments) const;
  std::size_t workspace() const { return workspace_; }
  bool has_library_relu() const;
  // Whether GpuKernel::own has been prepared, because a library has no engine.
  bool is_own() const { return is_own_; }

 private:
  std::vector<std::unique_ptr<PreparedCommand>> commands_;
  std::size_t workspace_ = 0;
  bool is_own_;
};

// What all devices of a platform share.
struct Shared {
  Compiler compiler;
  gpu::TimedChoices choices;
};

class Libraries {
 public:
  // Prepares kernels for the current device, or if `properties` is not empty for the GPU that it describes, as the JSON
  // text that cuDNN prints; they cannot run. Attention is planned for the current device, and for a described one if
  // `plans_attention`; see make_attention_plan().
  Libraries(int compute_capability, GenerateSource generate_source, std::shared_ptr<Shared> shared,
            const std::string& properties = {}, bool plans_attention = false);

  // Starts to compile in the background, for a later call of prepare() with the same arguments.
  void begin_preparing(const Op& op, const GpuRequest& request, const GpuKernel& kernel);
  Kernel prepare(const Op& op, const GpuRequest& request, const GpuKernel& kernel, Relu relu = Relu::by_library);

 private:
  // Null if a library has no engine, and GpuKernel::own is to run.
  std::unique_ptr<PreparedCommand> make(const GpuLaunch& launch, const Op& op, const GpuRequest& request, Relu relu);
  std::unique_ptr<PreparedCommand> make(const GpuMatmul& product, const Op& op, const GpuRequest& request, Relu relu);
  std::unique_ptr<PreparedCommand> make(const GpuConv& conv, const Op& op, const GpuRequest& request, Relu relu);
  std::unique_ptr<PreparedCommand> make(const GpuAttention& attention, const Op& op, const GpuRequest& request,
                                        Relu relu);
  std::unique_ptr<PreparedCommand> make(const GpuGenerated& generated, const Op& op, const GpuRequest& request,
                                        Relu relu);
  const CudnnPlanner& cudnn();
  gpu::GeneratedSource generated_for(const Op& op, const GpuRequest& request) const;
  // Null if there is no GPU to take times on.
  gpu::TimedChoices* choices() const { return runs_on_ == RunsOn::device ? &shared_->choices : nullptr; }

  int compute_capability_;
  GenerateSource generate_source_;
  std::shared_ptr<Shared> shared_;
  RunsOn runs_on_;
  bool plans_attention_;
  CublasHandle cublas_;
  std::shared_ptr<CudnnPlanner> cudnn_;
};

// Opens the described GPU; see gpu::ModuleTable::describe.
gpu::DescribedGpu describe_gpu(const std::string& description, GenerateSource generate_source);

}  // namespace pmaptrain::cuda
