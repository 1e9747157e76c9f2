#include "core/runtime/backends.h"

#include "core/runtime/cpu/module.h"
#include "core/runtime/reference/module.h"

namespace pmaptrain {

std::string_view to_string(BackendKind kind) { return kind == BackendKind::cpu ? "cpu" : "reference"; }

std::unique_ptr<Backend> make_backend(BackendKind kind, const BackendOptions& options) {
  switch (kind) {
    case BackendKind::reference: return std::make_unique<reference::ReferenceBackend>();
    case BackendKind::cpu: break;
  }
  return std::make_unique<CpuBackend>(CpuBackendOptions{options.workers, options.kernels, {}});
}

}  // namespace pmaptrain
