#include <fmt/format.h>

#include "core/base/error.h"
#include "core/runtime/cuda/kernels.h"
#include "core/runtime/cuda/prepare.h"

namespace pmaptrain::cuda {
namespace {

class Launch final : public PreparedCommand {
 public:
  // `kernel` is null if there is no GPU; then run() must not be called.
  Launch(const GpuLaunch& launch, const void* kernel)
      : name_(launch.kernel), kernel_(kernel), threads_(launch.threads), arguments_(launch.arguments) {
    blocks_ = dim3(launch.blocks[0], launch.blocks[1], launch.blocks[2]);
    values_.resize(arguments_.size());
    for (std::uint64_t& value : values_) addresses_.push_back(&value);
    if (kernel_ == nullptr) return;
    // This loads the kernel's code, which otherwise happens at the first launch and is forbidden during a capture.
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, kernel_), name_);
  }

  void run(cudaStream_t stream, const gpu::LaunchArguments& arguments) override {
    if (blocks_.x == 0 || blocks_.y == 0 || blocks_.z == 0) return;
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = gpu::value_of(arguments_[i], arguments);
    check(cudaLaunchKernel(kernel_, blocks_, dim3(threads_), addresses_.data(), 0, stream), name_);
  }

 private:
  std::string name_;
  const void* kernel_;
  dim3 blocks_;
  unsigned threads_;
  std::vector<GpuArgument> arguments_;
  std::vector<std::uint64_t> values_;
  std::vector<void*> addresses_;  // addresses of the elements of values_
};

class GeneratedLaunches final : public PreparedCommand {
 public:
  GeneratedLaunches(OwnLibrary library, std::vector<std::unique_ptr<PreparedCommand>> launches)
      : library_(std::move(library)), launches_(std::move(launches)) {}

  void run(cudaStream_t stream, const gpu::LaunchArguments& arguments) override {
    for (const auto& launch : launches_) launch->run(stream, arguments);
  }

 private:
  OwnLibrary library_;
  std::vector<std::unique_ptr<PreparedCommand>> launches_;
};

}  // namespace

std::unique_ptr<PreparedCommand> prepare_launch(const GpuLaunch& launch, RunsOn runs_on) {
  const void* const kernel = kernel_named(launch.kernel);
  if (kernel == nullptr) {
    fail_running(
        fmt::format("GPU: there is no kernel '{}' in this build; this is a mistake of pmaptrain", launch.kernel));
  }
  return std::make_unique<Launch>(launch, runs_on == RunsOn::device ? kernel : nullptr);
}

std::unique_ptr<PreparedCommand> prepare_generated(const std::string& code, const std::vector<GpuLaunch>& launches,
                                                   RunsOn runs_on) {
  OwnLibrary library;
  if (runs_on == RunsOn::device) {
    check(cudaLibraryLoadData(library.create(), code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
          "loading a generated kernel");
  }
  std::vector<std::unique_ptr<PreparedCommand>> prepared;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    cudaKernel_t kernel = nullptr;
    if (runs_on == RunsOn::device) {
      const std::string name = generated_name(launches[i].kernel, i);
      check(cudaLibraryGetKernel(&kernel, library.get(), name.c_str()), "loading a generated kernel");
    }
    prepared.push_back(std::make_unique<Launch>(launches[i], reinterpret_cast<const void*>(kernel)));
  }
  return std::make_unique<GeneratedLaunches>(std::move(library), std::move(prepared));
}

}  // namespace pmaptrain::cuda
