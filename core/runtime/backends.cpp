#include "core/runtime/backends.h"

#include <algorithm>
#include <iterator>

#include "core/base/error.h"
#include "core/runtime/cpu/module.h"
#include "core/runtime/gpu/backend.h"
#include "core/runtime/gpu/load_platform.h"
#include "core/runtime/reference/module.h"

namespace pmaptrain {

namespace {

gpu::Platform* platform_of_tests = nullptr;
thread_local gpu::Platform* platform_of_thread = nullptr;
gpu::Platform* loaded_platform = nullptr;
HostPlace host_place;

gpu::Platform* replaced_platform() { return platform_of_thread != nullptr ? platform_of_thread : platform_of_tests; }

gpu::Platform& the_platform() {
  if (replaced_platform() != nullptr) return *replaced_platform();
  // This is never freed: the module stays open until the process ends, and its threads may run until then.
  static gpu::Platform* const platform = [] {
    return loaded_platform = gpu::load_platform({gpu::generate_source, 0, host_place}).release();
  }();
  return *platform;
}

// The GPU for which workspaces are planned: the first one of this machine or, if there is none, an H100.
gpu::DescribedGpu& planning_gpu() {
  if (replaced_platform() != nullptr) fail_resource("emulated GPUs plan nothing");
  const auto described = [] {
    try {
      return the_platform().description(0);
    } catch (const Error&) {
      return std::string(gpu::h100);
    }
  };
  static auto* const gpu = new gpu::DescribedGpu(gpu::describe_gpu(described()));  // never freed, like the platform
  return *gpu;
}

struct Factory {
  BackendKind kind;
  std::string_view name;
  std::unique_ptr<Backend> (*make)(const BackendOptions& options);
};

constexpr Factory factories[] = {
    {BackendKind::cpu, "cpu",
     [](const BackendOptions& options) -> std::unique_ptr<Backend> {
       return std::make_unique<CpuBackend>(CpuBackendOptions{options.workers, options.kernels, {}});
     }},
    {BackendKind::cuda, "cuda",
     [](const BackendOptions& options) -> std::unique_ptr<Backend> {
       return std::make_unique<gpu::GpuBackend>(
           the_platform,
           gpu::GpuOptions{options.workers,
                           {.deterministic = options.deterministic, .tf32 = options.tf32, .blocks = options.blocks},
                           make_gpu_kernel,
                           planning_gpu,
                           options.gpu_memory});
     }},
    {BackendKind::reference, "reference",
     [](const BackendOptions&) -> std::unique_ptr<Backend> { return std::make_unique<reference::ReferenceBackend>(); }},
};

const Factory& factory_of(BackendKind kind) {
  return *std::find_if(std::begin(factories), std::end(factories),
                       [&](const Factory& factory) { return factory.kind == kind; });
}

}  // namespace

std::string_view to_string(BackendKind kind) { return factory_of(kind).name; }

std::unique_ptr<Backend> make_backend(BackendKind kind, const BackendOptions& options) {
  return factory_of(kind).make(options);
}

void set_gpu_platform(gpu::Platform* platform) { platform_of_tests = platform; }
void set_gpu_platform_of_thread(gpu::Platform* platform) { platform_of_thread = platform; }
bool gpus_are_given_up() { return loaded_platform != nullptr && loaded_platform->given_up(); }

void set_host_place(const HostPlace& place) { host_place = place; }

Gpus find_gpus() {
  Gpus gpus;
  try {
    const gpu::Platform& platform = the_platform();
    for (int device = 0; device < platform.devices(); ++device) gpus.all.push_back(platform.properties(device));
  } catch (const Error& error) {
    const Diagnostic& why = error.diagnostics().front();
    gpus = {{}, why.message, why.help};
  }
  return gpus;
}

}  // namespace pmaptrain
