// The backend "cpu": each entry of a module runs on CPU threads, by a plan and an executor of its own.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "core/runtime/backend.h"
#include "core/runtime/cpu/executor.h"

namespace pmaptrain {

struct CpuBackendOptions {
  std::optional<int> workers = {};  // threads; none: the cores that affinity and cgroups allow, at most one per block
  KernelChoice kernels = KernelChoice::best;
  // What makes a kernel, in place of make_cpu_kernel; called on the thread of the worker that will run it.
  std::function<std::unique_ptr<CpuKernel>(const Op& op, const CpuRequest& request)> make_kernel = {};
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(CpuBackendOptions options = {}) : options_(std::move(options)) {}
  std::string_view name() const override { return "cpu"; }
  int workers(const Source& source) const override;
  std::int64_t barriers_per_step(const Source& source, std::size_t entry) const override;
  Needs needs(const Source& source) const override;
  std::unique_ptr<Module> load(Source source) const override;

 private:
  CpuBackendOptions options_;
};

}  // namespace pmaptrain
