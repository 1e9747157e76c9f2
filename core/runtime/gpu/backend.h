// The backend "cuda": logical devices on the GPUs of one machine.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "core/runtime/backend.h"
#include "core/runtime/gpu/device.h"
#include "core/runtime/gpu/plans.h"

namespace pmaptrain::gpu {

class GpuBackend final : public Backend {
 public:
  // `open` returns the platform, which must outlive the backend and its modules. `open` may throw Error (resource) if
  // the machine has no GPU: plans can still be made if `options` has a number of GPUs or a memory size.
  GpuBackend(std::function<Platform&()> open, GpuOptions options)
      : open_(std::move(open)), options_(std::move(options)) {}

  std::string_view name() const override { return "cuda"; }
  bool uses_gpus() const override { return true; }
  int workers(const Source& source) const override;
  std::int64_t barriers_per_step(const Source& source, std::size_t entry) const override;
  std::optional<std::size_t> device_memory() const override;
  MemoryNeeds needs(const Source& source) const override { return needs_on(workers(source), source); }
  PlanReport report(Source source, std::size_t entry) const override;
  std::optional<int> fewest_workers_that_fit(const Source& source, std::size_t bytes) const override;
  std::unique_ptr<Module> load(Source source) const override;

 private:
  Platform* platform_if_found() const;  // null if there is no GPU
  MemoryNeeds needs_on(int gpus, const Source& source) const;

  const std::function<Platform&()> open_;
  const GpuOptions options_;
};

}  // namespace pmaptrain::gpu
