#include "core/ops/gpu_kernels.cuh"
#include "core/runtime/cuda/kernels.h"

namespace pmaptrain::cuda {
namespace {

struct NamedKernel {
  std::string_view name;
  const void* kernel;
};
const NamedKernel kernels[] = {
#define PMAPTRAIN_ENTRY(base, suffix) {#base "_" #suffix, reinterpret_cast<const void*>(ops::device::base##_##suffix)},
    PMAPTRAIN_GPU_KERNELS(PMAPTRAIN_ENTRY)
#undef PMAPTRAIN_ENTRY
};

}  // namespace

const void* kernel_named(std::string_view name) {
  for (const NamedKernel& each : kernels) {
    if (each.name == name) return each.kernel;
  }
  return nullptr;
}

}  // namespace pmaptrain::cuda
