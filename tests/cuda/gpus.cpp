#include "tests/cuda/gpus.h"

#include <cstdlib>
#include <string_view>

#include "core/runtime/gpu/generate.h"
#include "core/runtime/gpu/load_platform.h"
#include "tests/catch.h"
#include "tests/cuda/emulated.h"

namespace pmaptrain::test {
namespace {

const Gpus& gpus_here() {
  static const Gpus gpus = find_gpus();
  return gpus;
}

}  // namespace

bool tests_use_cuda() {
  const char* const which = std::getenv("PMAPTRAIN_TEST_GPUS");
  return which != nullptr && std::string_view(which) == "cuda";
}

bool has_cuda_gpu() {
  if (!gpus_here().all.empty()) return true;
  WARN("skipped: there is no GPU to test: " << gpus_here().none_because);
  return false;
}

bool has_gpus() { return !tests_use_cuda() || has_cuda_gpu(); }

std::unique_ptr<gpu::Platform> open_gpus(int count) {
  if (!tests_use_cuda()) return make_emulated({.devices = count, .seed = static_cast<unsigned>(count)});
  const bool are_there = count <= static_cast<int>(gpus_here().all.size());
  return gpu::load_platform({gpu::generate, are_there ? 0 : count, {}});
}

}  // namespace pmaptrain::test
