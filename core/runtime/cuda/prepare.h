// The commands of kernels, prepared for a device: convolutions with cuDNN, matrix products with cuBLASLt, and launches
// of this project's own kernels, those that are part of this library and generated ones.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernel/gpu.h"
#include "core/runtime/cuda/cudnn_plan.h"
#include "core/runtime/cuda/handles.h"
#include "core/runtime/gpu/device.h"
#include "core/runtime/gpu/timed_choice.h"

namespace pmaptrain::cuda {

// How the relu after a convolution or a product is computed. The relu must keep NaNs. Libraries do not document what
// their relu does with NaNs, so CudaDevice tries the variants on NaNs, in this order, and uses the first one that keeps
// them.
enum class Relu : std::uint8_t {
  by_library,
  separate,  // by a separate kernel of our own
};
inline constexpr Relu relu_variants[] = {Relu::by_library, Relu::separate};

class PreparedCommand {
 public:
  virtual ~PreparedCommand() = default;
  // Queues the command on the stream. `arguments.workspace` must have workspace() bytes, aligned to 256 bytes.
  virtual void run(cudaStream_t stream, const gpu::LaunchArguments& arguments) = 0;
  std::size_t workspace() const { return workspace_; }
  // Whether the library's kernel applies a relu.
  virtual bool has_library_relu() const { return false; }

 protected:
  std::size_t workspace_ = 0;
};

// Finds the slice of each logical device in the operands and results of a launch.
struct Slices {
  explicit Slices(const GpuRequest& request);

  const std::byte* operand(const gpu::LaunchArguments& arguments, std::size_t index, std::int64_t device) const {
    return arguments.operands[index] + static_cast<std::ptrdiff_t>(operand_stride[index] * device);
  }
  std::byte* result(const gpu::LaunchArguments& arguments, std::size_t index, std::int64_t device) const {
    return arguments.results[index] + static_cast<std::ptrdiff_t>(result_stride[index] * device);
  }

  std::int64_t devices;
  std::vector<std::int64_t> operand_stride, result_stride;  // in bytes; 0 for an operand that all devices share
};

// The alignment of all slices of this type if they follow one another from an aligned address: at most `limit` bytes.
std::size_t alignment_of(const Type& type, std::size_t limit);

// Divides a workspace into parts, each aligned to 256 bytes: add() returns the offset of a new part.
class WorkspaceLayout {
 public:
  std::size_t add(std::size_t bytes) {
    const std::size_t begin = size_;
    size_ += (bytes + 255) / 256 * 256;
    return begin;
  }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_ = 0;
};

// The following functions throw Error (failed), with the name of the op or kernel, if there is nothing that carries the
// command out.

// cuDNN's heuristics choose the engine (its implementation). If the request need not be deterministic, it may be one
// that gives other bits in each run, and the fastest of the heuristics' first three is taken. If `choices` is null,
// there is no GPU to take times on, and the first is taken; none that may be chosen needs more workspace.
std::unique_ptr<PreparedCommand> prepare_conv(const GpuConv& conv, std::string_view op, const GpuRequest& request,
                                              const CudnnPlanner& planner, gpu::TimedChoices* choices, Relu relu);

// Null if cuDNN has no engine for it, or only one that takes more than attention_workspace(). Without a planner it
// cannot run, and its workspace is attention_workspace().
std::unique_ptr<PreparedCommand> prepare_attention(const GpuAttention& attention, const GpuRequest& request,
                                                   const CudnnPlanner* planner);

using CublasHandle = Handle<cublasLtHandle_t, cublasLtDestroy>;

// Chooses the algorithm by the library's heuristics, which choose the same one for equal shapes on equal GPUs. A kernel
// adds up columns; if the request need not be deterministic, the library does so where that is faster. If `handle` and
// `choices` are null, there is no GPU: the product cannot run, and the library's workspace is matmul_budget.
std::unique_ptr<PreparedCommand> prepare_matmul(const GpuMatmul& product, std::string_view op,
                                                const GpuRequest& request, cublasLtHandle_t handle,
                                                gpu::TimedChoices* choices, Relu relu);

// Whether kernels are loaded on the current device, or only compiled because there is no GPU.
enum class RunsOn : std::uint8_t { device, nowhere };

std::unique_ptr<PreparedCommand> prepare_launch(const GpuLaunch& launch, RunsOn runs_on);

// Loads the kernels of the launches (generated_name()) from compiled `code`.
std::unique_ptr<PreparedCommand> prepare_generated(const std::string& code, const std::vector<GpuLaunch>& launches,
                                                   RunsOn runs_on);

}  // namespace pmaptrain::cuda
