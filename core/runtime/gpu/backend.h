// The backend "cuda": logical devices on the GPUs of one process, or of several.
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
  std::optional<std::size_t> device_memory() const override;
  using Backend::plan;
  std::unique_ptr<Planned> plan(Source source, Processes processes) const override;
  std::optional<int> fewest_workers_that_fit(const Source& source, const Processes& processes,
                                             std::size_t bytes) const override;

 private:
  Platform* platform_if_found() const;  // null if there is no GPU
  int gpus_for(const Source& source, Placement placement) const;
  std::unique_ptr<Planned> plan_on(int gpus, Source source, Processes processes) const;

  const std::function<Platform&()> open_;
  const GpuOptions options_;
};

}  // namespace pmaptrain::gpu
