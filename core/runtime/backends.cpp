#include "core/runtime/backends.h"

#include "core/base/error.h"
#include "core/runtime/cpu/module.h"
#include "core/runtime/gpu/load_platform.h"
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

Gpus find_gpus() {
  Gpus gpus;
  try {
    const std::unique_ptr<gpu::Platform> platform = gpu::load_platform();
    for (int device = 0; device < platform->devices(); ++device) gpus.all.push_back(platform->properties(device));
  } catch (const Error& error) {
    const Diagnostic& why = error.diagnostics().front();
    gpus = {{}, why.message, why.help};
  }
  return gpus;
}

}  // namespace pmaptrain
