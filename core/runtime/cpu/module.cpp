#include "core/runtime/cpu/module.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <exception>
#include <new>

#include "core/base/machine.h"
#include "core/base/saturate.h"
#include "core/runtime/cpu/report.h"

namespace pmaptrain {
namespace {

std::size_t slices_of(const Program& program, const Type& type) {
  return type.varying.empty() ? 1 : static_cast<std::size_t>(program.mesh.devices());
}

// Bytes of a batch input in one slot.
std::size_t batch_bytes(const Program& program, const Input& input) {
  const Type& type = program.type(input.value);
  return product_of(slices_of(program, type), bytes(type));
}

// Where there is one slot, what varies is filled where the plan has it.
bool is_in_place(const Entry& entry, const Input& input) {
  return entry.batches == 1 && !entry.program->type(input.value).varying.empty();
}

struct AlignedDelete {
  void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{alignment}); }
};
using AlignedBytes = std::unique_ptr<std::byte[], AlignedDelete>;

AlignedBytes allocate(std::size_t size) { return AlignedBytes(new (std::align_val_t{alignment}) std::byte[size]()); }

// An entry as it is loaded.
struct Loaded {
  Loaded(Plan plan, const CpuOptions& options) : executor(std::move(plan), options) {}

  CpuExecutor executor;
  std::vector<std::vector<AlignedBytes>> slots;  // by slot and input; null where it is filled in place, or no batch
  std::vector<bool> stale;                       // by input: another entry has the present value
};

class CpuModule final : public Module {
 public:
  CpuModule(Source given, const CpuOptions& options) : Module(std::move(given)) {
    for (const Entry& entry : source().entries) {
      const Program& program = *entry.program;
      Loaded& loaded = entries_.emplace_back(make_plan(entry.program, {source().private_copies}), options);
      loaded.stale.resize(program.inputs.size());
      for (int slot = 0; slot < entry.batches; ++slot) {
        std::vector<AlignedBytes>& memory = loaded.slots.emplace_back(program.inputs.size());
        for (std::size_t i = 0; i < program.inputs.size(); ++i) {
          const Input& input = program.inputs[i];
          if (input.group != Group::batch || is_in_place(entry, input)) continue;
          memory[i] = allocate(batch_bytes(program, input));
          slot_bytes_ += batch_bytes(program, input);
        }
      }
    }
  }

  std::span<std::byte> batch(std::size_t entry, int slot, std::string_view name) override {
    const std::vector<Input>& inputs = program(entry).inputs;
    const auto found = std::find_if(inputs.begin(), inputs.end(), [&](const Input& input) {
      return input.group == Group::batch && input.name == name;
    });
    if (found == inputs.end()) return {};
    if (is_in_place(source().entries[entry], *found)) return entries_[entry].executor.stacked(name);
    const auto index = static_cast<std::size_t>(found - inputs.begin());
    return {entries_[entry].slots[static_cast<std::size_t>(slot)][index].get(), batch_bytes(program(entry), *found)};
  }

  Ticket submit(std::size_t entry, int slot, std::int64_t steps) override {
    return done_now([&] {
      prepare(entry, slot);
      entries_[entry].executor.run(steps);
      mark_others(entry);
    });
  }

  Ticket write(Handle handle, std::int64_t device, std::span<const std::byte> bytes) override {
    return done_now([&] {
      for (std::size_t e = 0; e < entries_.size(); ++e) {
        const std::optional<std::size_t> index = index_in(e, handle);
        if (!index) continue;
        const std::string& name = program(e).inputs[*index].name;
        CpuExecutor& executor = entries_[e].executor;
        if (device == every_device) {
          executor.set(name, bytes);
          entries_[e].stale[*index] = false;
        } else {
          refresh(e, *index);
          executor.set(name, device, bytes);
        }
      }
    });
  }

  Ticket read(Handle handle, std::int64_t device, std::span<std::byte> into, std::size_t offset) override {
    return done_now([&] {
      const ModuleValue& of = value(handle);
      const auto first = static_cast<std::size_t>(of.entry);
      const std::span<const std::byte> all =
          of.is_input ? present(handle).input(program(first).inputs[static_cast<std::size_t>(of.index)].name, device)
                      : entries_[first].executor.output(program(first).outputs[static_cast<std::size_t>(of.index)].name,
                                                        device);
      if (offset > all.size() || into.size() > all.size() - offset) {
        fail_running("a read past the end of a value of " + std::to_string(all.size()) + " bytes");
      }
      std::memcpy(into.data(), all.data() + offset, into.size());
    });
  }

  bool done(Ticket) override { return true; }
  void wait(Ticket ticket) override {
    if (failure_ && ticket.number >= failed_) std::rethrow_exception(failure_);
  }

  std::size_t allocated() const override {
    std::size_t total = slot_bytes_;
    for (const Loaded& entry : entries_) total += entry.executor.memory_bytes();
    return total;
  }

  std::vector<InstructionReport> instructions(std::size_t entry) const override {
    std::vector<InstructionReport> reports;
    for (PlanRow& row : rows_of(entries_[entry].executor)) reports.push_back(std::move(row.report));
    return reports;
  }

  Profile profile(std::size_t entry, int slot, std::int64_t steps) override {
    CpuExecutor& executor = entries_[entry].executor;
    prepare(entry, slot);
    const StepTimes times = executor.profile(steps);
    mark_others(entry);
    Profile profile;
    const auto count = static_cast<double>(steps);
    for (const PlanRow& row : rows_of(executor)) {
      const auto found = times.seconds.find(row.step);
      const double seconds = found == times.seconds.end() ? 0 : found->second;
      profile.seconds.push_back(seconds / count / static_cast<double>(executor.workers()));
    }
    profile.wall_seconds = times.wall_seconds / count;
    return profile;
  }

 private:
  // Does it at once; what it throws is kept for wait(), and nothing is done any more after that.
  template <class F>
  Ticket done_now(F&& f) {
    ++last_;
    if (failure_) return {last_};
    try {
      f();
    } catch (...) {
      failure_ = std::current_exception();
      failed_ = last_;
    }
    return {last_};
  }

  // The input's number in an entry; none where the entry has it not.
  std::optional<std::size_t> index_in(std::size_t entry, Handle handle) const {
    const ModuleValue& of = value(handle);
    if (!of.is_input) fail_running("an output of a module cannot be written");
    const Input& input = program(static_cast<std::size_t>(of.entry)).inputs[static_cast<std::size_t>(of.index)];
    const Input* const found = program(entry).find_input(input.name);
    if (found == nullptr || found->group == Group::batch) return std::nullopt;
    return static_cast<std::size_t>(found - program(entry).inputs.data());
  }

  // The executor of the first entry that has the input's present value.
  const CpuExecutor& present(Handle handle) const {
    for (std::size_t e = 0; e < entries_.size(); ++e) {
      const std::optional<std::size_t> index = index_in(e, handle);
      if (index && !entries_[e].stale[*index]) return entries_[e].executor;
    }
    fail_running("no entry has the present value of an input");
  }

  // Gives an entry the present value of an input.
  void refresh(std::size_t entry, std::size_t index) {
    Loaded& to = entries_[entry];
    if (!to.stale[index]) return;
    const std::string& name = program(entry).inputs[index].name;
    const CpuExecutor& from = present(input(name));
    const bool is_stacked = !to.executor.stacked(name).empty();
    for (std::int64_t d = 0; d < (is_stacked ? program(entry).mesh.devices() : 1); ++d) {
      is_stacked ? to.executor.set(name, d, from.input(name, d)) : to.executor.set(name, from.input(name, d));
    }
    to.stale[index] = false;
  }

  // Everything that a step of the entry reads.
  void prepare(std::size_t entry, int slot) {
    Loaded& loaded = entries_[entry];
    const std::vector<Input>& inputs = program(entry).inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      refresh(entry, i);
      const std::byte* const from = loaded.slots[static_cast<std::size_t>(slot)][i].get();
      if (from == nullptr) continue;
      const std::span<const std::byte> batch(from, batch_bytes(program(entry), inputs[i]));
      const std::span<std::byte> to = loaded.executor.stacked(inputs[i].name);
      if (to.size() == batch.size()) {
        std::memcpy(to.data(), batch.data(), batch.size());
      } else {
        loaded.executor.set(inputs[i].name, batch);
      }
    }
  }

  // After steps of an entry: what they replaced is out of date in the others.
  void mark_others(std::size_t entry) {
    if (entries_.size() == 1) return;
    for (const Input& input : program(entry).inputs) {
      if (!input.next) continue;
      const Handle handle = this->input(input.name);
      for (std::size_t e = 0; e < entries_.size(); ++e) {
        if (e == entry) continue;
        if (const std::optional<std::size_t> index = index_in(e, handle)) entries_[e].stale[*index] = true;
      }
    }
  }

  std::deque<Loaded> entries_;
  std::size_t slot_bytes_ = 0;
  std::int64_t last_ = 0, failed_ = 0;  // tickets
  std::exception_ptr failure_;
};

Plan plan_of(const Source& source, std::size_t entry) {
  return make_plan(source.entries[entry].program, {source.private_copies});
}

void add_entry(const Source& source, std::size_t number, int workers, Needs& needs) {
  const Entry& entry = source.entries[number];
  const Program& program = *entry.program;
  const Plan plan = plan_of(source, number);
  const auto blocks = static_cast<std::int64_t>(plan.blocks.size());
  std::size_t named = 0, slot = 0;
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const Input& input = program.inputs[i];
    const Buffer& buffer = plan.buffers[static_cast<std::size_t>(plan.inputs[i])];
    const std::int64_t copies = buffer.home == Home::device   ? program.mesh.devices()
                                : buffer.home == Home::worker ? workers
                                                              : 1;
    const std::size_t held = product_of(buffer.slice_bytes(), static_cast<std::size_t>(copies));
    const auto add = [&](std::size_t& to) {
      to = sum_of(to, held);
      named = sum_of(named, held);
    };
    if (input.group == Group::params) add(needs.parameters);
    if (input.group == Group::state) add(needs.state);
    if (input.group != Group::batch) continue;
    add(needs.batches);
    if (!is_in_place(entry, input)) slot = sum_of(slot, batch_bytes(program, input));
  }
  const auto slots = static_cast<std::size_t>(entry.batches);
  needs.batches = sum_of(needs.batches, product_of(slots, slot));
  const std::size_t gradients = product_of(2 * plan.blocks.size(), plan.pools.accumulators);
  needs.gradients = sum_of(needs.gradients, gradients);
  named = sum_of(named, gradients);
  const std::size_t held = plan.pools.total(workers, blocks);
  needs.temporaries = sum_of(needs.temporaries, held > named ? held - named : 0);

  const std::string prefix = number == 0 ? "" : entry.name + ": ";
  const auto per_worker = static_cast<std::size_t>(workers);
  const std::int64_t together = plan.pools.blocks_at_once(workers, blocks);
  const std::string at_once = together == 1 ? "one at a time" : std::to_string(together) + " at once";
  const PoolSizes& pools = plan.pools;
  needs.pools.insert(
      needs.pools.end(),
      {{prefix + "constants", pools.constants, 1, "filled once"},
       {prefix + "shared", pools.shared, 1, "the same on every device, kept once for the process"},
       {prefix + "devices", pools.devices, 1, "a slice for every device, kept through the step"},
       {prefix + "worker", pools.worker, per_worker, "small and the same on every device"},
       {prefix + "arena", pools.arena, per_worker * static_cast<std::size_t>(together),
        "scratch for one of " + std::to_string(blocks) + " blocks of devices; a worker has " + at_once},
       {prefix + "accumulators", pools.accumulators, 2 * plan.blocks.size(), "sums over a block's devices, kept twice"},
       {prefix + "batches", slot, slots, "filled while steps run"}});
}

}  // namespace

int CpuBackend::workers(const Source& source) const {
  if (options_.workers) return *options_.workers;
  const std::int64_t devices = source.entries.front().program->mesh.devices();
  const auto blocks = static_cast<double>(cut_into_blocks(devices).size());
  return static_cast<int>(std::min(std::floor(allowed_cores()), blocks));
}

std::int64_t CpuBackend::barriers_per_step(const Source& source, std::size_t entry) const {
  return plan_of(source, entry).barriers_per_step();
}

Needs CpuBackend::needs(const Source& source) const {
  Needs needs;
  for (std::size_t e = 0; e < source.entries.size(); ++e) add_entry(source, e, workers(source), needs);
  return needs;
}

std::unique_ptr<Module> CpuBackend::load(Source source) const {
  const CpuOptions options{workers(source), options_.kernels, options_.make_kernel};
  return std::make_unique<CpuModule>(std::move(source), options);
}

}  // namespace pmaptrain
