// The module libpmaptrain_cuda.so in tests.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/runtime/gpu/load_platform.h"
#include "tests/catch.h"

namespace pmaptrain::test {

// A variable of the environment, until the end of a scope.
class Variable {
 public:
  Variable(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* const before = std::getenv(name_.c_str())) before_ = before;
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Variable() {
    if (before_) {
      setenv(name_.c_str(), before_->c_str(), 1);
    } else {
      unsetenv(name_.c_str());
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  std::string name_;
  std::optional<std::string> before_;
};

// The module of this build, or the one that PMAPTRAIN_TEST_CUDA_MODULE names; empty where there is none. A warning then
// says that the case tests nothing, and it has to end: scripts/test builds the module where nvcc is.
inline std::string cuda_module() {
  if (const char* const named = std::getenv("PMAPTRAIN_TEST_CUDA_MODULE")) return named;
  for (const std::filesystem::path& place : gpu::module_search_paths()) {
    if (std::filesystem::exists(place)) return place.string();
  }
  WARN("skipped: the module for GPUs is not built: scripts/build cuda pmaptrain_cuda");
  return "";
}

// The GPU for which the module prepares kernels where there is none: an NVIDIA H100. Empty without a module.
inline std::optional<gpu::DescribedGpu> described(decltype(gpu::ModuleOptions::generate_source) generate = nullptr) {
  const std::string module = cuda_module();
  if (module.empty()) return std::nullopt;
  const Variable named("PMAPTRAIN_CUDA_MODULE", module);
  gpu::DescribedGpu gpu = gpu::describe_gpu(gpu::h100, generate);
  CHECK(gpu.properties.compute_capability == 90);
  return gpu;
}

// Null without a module.
inline std::unique_ptr<gpu::KernelPreparer> described_device(
    decltype(gpu::ModuleOptions::generate_source) generate = nullptr) {
  std::optional<gpu::DescribedGpu> gpu = described(generate);
  return gpu ? std::move(gpu->kernels) : nullptr;
}

}  // namespace pmaptrain::test
