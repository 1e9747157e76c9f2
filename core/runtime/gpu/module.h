// The module of the backend "cuda", on the GPUs of any Platform (CUDA or an emulation). Each GPU has a thread, which
// queues the steps of its part of the mesh.
#pragma once

#include <memory>
#include <string_view>

#include "core/runtime/backend.h"
#include "core/runtime/gpu/device.h"
#include "core/runtime/gpu/plans.h"

namespace pmaptrain::gpu {

class GpuModule final : public Module {
 public:
  // `plans` has the plans of all GPUs of this process. Every process calls this.
  GpuModule(Source source, Platform& platform, Plans plans, const GpuOptions& options, Processes processes = {});
  ~GpuModule() override;

  std::span<std::byte> batch(std::size_t entry, int slot, std::string_view input, std::int64_t member) override;
  Ticket submit(std::size_t entry, int slot, std::int64_t steps, std::span<const std::int64_t> members) override;
  Ticket submit_each(std::size_t entry, int slot, int count, std::span<const std::int64_t> members) override;
  int steps_per_group(std::size_t entry) const override;
  int groups_ahead() const override { return 4; }
  Ticket submit_traced(std::size_t entry, int slot, std::span<const std::int64_t> members, StepTrace& trace) override;
  Ticket write_slices(Handle input, DeviceOfMember to, std::span<const std::byte> bytes,
                      std::optional<std::size_t> offset) override;
  Ticket read_slice(Handle value, DeviceOfMember from, std::span<std::byte> into, std::size_t offset) override;
  bool done(Ticket ticket) override;
  void wait(Ticket ticket) override;
  int workers() const override;
  std::int64_t barriers_per_step(std::size_t entry) const override;
  std::size_t allocated() const override;
  std::vector<InstructionReport> instructions(std::size_t entry) const override;
  std::vector<StageReport> stages(std::size_t entry) const override;
  Profile profile(std::size_t entry, int slot, std::int64_t steps) override;
  std::vector<LoadTime> load_times() const override;  // of the first GPU

  // The plan of the first GPU.
  const Plan& plan(std::size_t entry) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pmaptrain::gpu
