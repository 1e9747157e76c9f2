// The backend "cuda": logical devices on the GPUs of one machine, each a thread, a stream of graphs and a part of the
// mesh. It runs on any Platform: CUDA's, or one that emulates GPUs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "core/runtime/backend.h"
#include "core/runtime/gpu/device.h"
#include "core/runtime/gpu/executor.h"
#include "core/runtime/gpu/plan.h"

namespace pmaptrain::gpu {

struct GpuOptions {
  std::optional<int> gpus = {};  // none: as many as there are and the mesh divides over
  PlanOptions plan = {};
  // In place of make_gpu_kernel, for tests; called on the threads of the devices.
  MakeKernel make_kernel = {};
};

class GpuModule final : public Module {
 public:
  GpuModule(Source source, Platform& platform, int gpus, const GpuOptions& options);
  ~GpuModule() override;

  std::span<std::byte> batch(std::size_t entry, int slot, std::string_view input, std::int64_t member) override;
  Ticket submit(std::size_t entry, int slot, std::int64_t steps, std::span<const std::int64_t> members) override;
  Ticket submit_traced(std::size_t entry, int slot, std::span<const std::int64_t> members, StepTrace& trace) override;
  Ticket write(Handle input, Instance to, std::span<const std::byte> bytes) override;
  Ticket read(Handle value, Instance from, std::span<std::byte> into, std::size_t offset) override;
  bool done(Ticket ticket) override;
  void wait(Ticket ticket) override;
  std::size_t allocated() const override;
  std::vector<InstructionReport> instructions(std::size_t entry) const override;
  std::vector<StageReport> stages(std::size_t entry) const override;
  Profile profile(std::size_t entry, int slot, std::int64_t steps) override;

  // Of the first GPU.
  const Plan& plan(std::size_t entry) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class GpuBackend final : public Backend {
 public:
  // `open` gives the platform, which outlives this and its modules, when it is needed: to load, and to count GPUs where
  // the options do not. It may throw Error (resource).
  GpuBackend(std::function<Platform&()> open, GpuOptions options)
      : open_(std::move(open)), options_(std::move(options)) {}

  std::string_view name() const override { return "cuda"; }
  int workers(const Source& source) const override;
  std::int64_t barriers_per_step(const Source& source, std::size_t entry) const override;
  Needs needs(const Source& source) const override;
  std::unique_ptr<Module> load(Source source) const override;

 private:
  const std::function<Platform&()> open_;
  const GpuOptions options_;
};

}  // namespace pmaptrain::gpu
