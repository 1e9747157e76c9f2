// The backend "reference" runs programs with the interpreter. It exists for tests of callers of a module: submit(),
// write() and read() only queue work, and wait() does it, as late as the interface allows. So a caller that reads a
// result or reuses memory before it has waited gets wrong values.
#pragma once

#include <deque>
#include <exception>
#include <functional>

#include "core/runtime/backend.h"
#include "core/runtime/interpreter.h"

namespace pmaptrain::reference {

// Every logical device has its own copy of every value.
class ReferenceModule final : public Module {
 public:
  explicit ReferenceModule(Source source);

  std::span<std::byte> batch(std::size_t entry, int slot, std::string_view input, std::int64_t member = 0) override;
  Ticket submit(std::size_t entry, int slot, std::int64_t steps = 1,
                std::span<const std::int64_t> members = {}) override;
  Ticket submit_traced(std::size_t entry, int slot, std::span<const std::int64_t> members, StepTrace& trace) override;
  Ticket write_slices(Handle input, DeviceOfMember instance, std::span<const std::byte> value,
                      std::optional<std::size_t> offset) override;
  Ticket read_slice(Handle value, DeviceOfMember instance, std::span<std::byte> into, std::size_t offset = 0) override;
  bool done(Ticket ticket) override;
  void wait(Ticket ticket) override;
  int workers() const override { return 1; }
  std::int64_t barriers_per_step(std::size_t) const override { return 0; }
  // The peak so far, because a step frees values while it runs.
  std::size_t allocated() const override;
  // One row for each equation. A loop comes before the equations of its body.
  std::vector<InstructionReport> instructions(std::size_t entry) const override;
  std::vector<StageReport> stages(std::size_t entry) const override;
  Profile profile(std::size_t entry, int slot, std::int64_t steps) override;

 private:
  using Values = std::map<std::string, PerDevice>;
  using Batch = std::map<std::string, std::vector<std::byte>, std::less<>>;  // inputs by name
  struct EntryState {
    std::vector<std::vector<Batch>> slots;  // by slot, then by member if each member has its own batch
    std::vector<Values> outputs;            // by member
  };

  using TimeObserver =
      std::function<void(const Equation&, Clock::time_point, Clock::time_point)>;  // InterpretOptions::time_observer
  Ticket queue(std::function<void()> work);
  void run(std::size_t entry, int slot, std::size_t member, const TimeObserver& time_observer = {});
  const std::string& name_of(const ModuleValue& input) const;

  std::vector<Values> inputs_;  // by member: the inputs of all entries except batch inputs
  std::vector<EntryState> entries_;
  std::size_t resting_bytes_ = 0;  // bytes held between steps
  std::size_t peak_bytes_ = 0;     // so far
  std::deque<std::function<void()>> queue_;
  std::int64_t queued_ = 0, carried_out_ = 0;  // the numbers of the last queued ticket and of the last one carried out
  std::int64_t failed_ = 0;                    // the first ticket whose work failed
  std::exception_ptr failure_;
};

class ReferenceBackend final : public Backend {
 public:
  std::string_view name() const override { return "reference"; }
  using Backend::plan;
  std::unique_ptr<Planned> plan(Source source, Processes processes) const override;
};

}  // namespace pmaptrain::reference
