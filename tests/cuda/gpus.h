// The GPUs of the cases that are tagged [gpu]: emulated ones, or with PMAPTRAIN_TEST_GPUS=cuda those of this machine.
// So each of them runs everywhere, but for the cases of tests/gpu, which ask for CUDA itself.
#pragma once

#include <memory>
#include <utility>

#include "core/runtime/backends.h"
#include "core/runtime/gpu/device.h"
#include "tests/slice.h"

namespace pmaptrain::test {

// Whether PMAPTRAIN_TEST_GPUS is cuda.
bool tests_use_cuda();

// All combinations on CUDA, where a step takes a hundredth of the time that it takes on emulated GPUs.
inline Slices gpu_slices() { return tests_use_cuda() ? Slices{true, slices().number} : slices(); }

// False where this machine has no GPU that CUDA reaches. A warning then says why, and the case has to end: Catch2 2 has
// no skipped cases, and ctest and scripts/test-gpu take such a warning for one.
bool has_cuda_gpu();

// False where the tests use CUDA and there is no GPU, likewise.
bool has_gpus();

// As many GPUs as that; on CUDA they share the first one where the machine has fewer.
std::unique_ptr<gpu::Platform> open_gpus(int count);

// The backend cuda has these GPUs as long as this lives.
class WithGpus {
 public:
  explicit WithGpus(std::unique_ptr<gpu::Platform> platform) : platform_(std::move(platform)) {
    set_gpu_platform(platform_.get());
  }
  explicit WithGpus(int count) : WithGpus(open_gpus(count)) {}
  ~WithGpus() { set_gpu_platform(nullptr); }
  WithGpus(const WithGpus&) = delete;
  WithGpus& operator=(const WithGpus&) = delete;

  const gpu::Platform& platform() const { return *platform_; }

 private:
  std::unique_ptr<gpu::Platform> platform_;
};

}  // namespace pmaptrain::test
