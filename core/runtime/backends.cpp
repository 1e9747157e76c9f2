#include "core/runtime/backends.h"

#include "core/runtime/cpu/module.h"

namespace pmaptrain {

std::unique_ptr<Backend> make_backend(BackendKind kind, const BackendOptions& options) {
  switch (kind) {
    case BackendKind::cpu: break;
  }
  return std::make_unique<CpuBackend>(CpuBackendOptions{options.workers, options.kernels, {}});
}

}  // namespace pmaptrain
