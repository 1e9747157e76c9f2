// The backend "cpu": runs logical devices on CPU threads.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/runtime/backend.h"
#include "core/runtime/cpu/plans.h"

namespace pmaptrain::cpu {

// Owns the memory, kernels and threads for the programs of a source. Results do not depend on the number of workers.
// submit(), write() and read() are synchronous: the calling thread and the others do the work before the call returns.
class CpuModule final : public Module {
 public:
  CpuModule(Source source, Plans plans, const CpuBackendOptions& options);
  CpuModule(const Source& source, const CpuBackendOptions& options);  // plans the source
  ~CpuModule() override;

  std::span<std::byte> batch(std::size_t entry, int slot, std::string_view input, std::int64_t member = 0) override;
  Ticket submit(std::size_t entry, int slot, std::int64_t steps = 1,
                std::span<const std::int64_t> members = {}) override;
  Ticket submit_traced(std::size_t entry, int slot, std::span<const std::int64_t> members, StepTrace& trace) override;
  Ticket write_slices(Handle input, DeviceOfMember instance, std::span<const std::byte> value,
                      std::optional<std::size_t> offset) override;
  void fill_slices(Handle input, std::int64_t member, const std::function<void(std::span<std::byte>)>& make) override;
  void clear_slices(Handle input) override;
  Ticket read_slice(Handle value, DeviceOfMember instance, std::span<std::byte> into, std::size_t offset = 0) override;
  bool done(Ticket ticket) override;
  void wait(Ticket ticket) override;
  std::size_t allocated() const override;
  std::vector<InstructionReport> instructions(std::size_t entry) const override;
  std::vector<StageReport> stages(std::size_t entry) const override;
  Profile profile(std::size_t entry, int slot, std::int64_t steps) override;

  int workers() const override;
  std::int64_t barriers_per_step(std::size_t entry) const override;

  const Plan& plan(std::size_t entry) const;
  // How many barriers all workers have passed in steps so far, modulo 2^32.
  std::uint32_t barriers_passed() const;
  // The op, shapes and implementation of each kernel of an entry, one per line.
  std::string kernel_shapes(std::size_t entry) const;

 private:
  struct Impl;

  // The name of the input that a handle is of, or is a part of.
  std::string_view name_of(Handle input) const;
  // Calls f(address) for every copy of an input.
  template <class F>
  void for_each_copy(Handle input, DeviceOfMember of, F&& f);

  std::unique_ptr<Impl> impl_;
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(CpuBackendOptions options = {}) : options_(std::move(options)) {}
  std::string_view name() const override { return "cpu"; }
  using Backend::plan;
  std::unique_ptr<Planned> plan(Source source, Processes processes) const override;

 private:
  CpuBackendOptions options_;
};

}  // namespace pmaptrain::cpu

namespace pmaptrain {
using cpu::CpuBackend;
using cpu::CpuBackendOptions;
using cpu::CpuModule;
}  // namespace pmaptrain
