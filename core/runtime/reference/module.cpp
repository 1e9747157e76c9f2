#include "core/runtime/reference/module.h"

#include <algorithm>
#include <set>

#include "core/analysis/cost.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/saturate.h"

namespace pmaptrain::reference {
namespace {

std::size_t devices_of(const Program& program) { return static_cast<std::size_t>(program.mesh.devices()); }

// The number of slices of a batch input.
std::size_t slices_of(const Program& program, const Type& type) {
  return static_cast<std::size_t>(program.mesh.group_size(type.varying));
}

std::size_t held_bytes(const Program& program, Value value) {
  return product_of(devices_of(program), bytes(program.type(value)));
}

// The bytes that a module holds between steps.
struct Resting {
  MemoryNeeds inputs;
  std::size_t outputs = 0;
  std::size_t total() const { return sum_of(inputs.total(), outputs); }
};

Resting resting(const Source& source) {
  Resting rest;
  const auto members = static_cast<std::size_t>(source.members);
  std::set<std::string_view> counted;
  for (const Entry& entry : source.entries) {
    const Program& program = *entry.program;
    for (const Input& input : program.inputs) {
      const Type& type = program.type(input.value);
      if (input.group == Group::batch) {
        const std::size_t slot =
            product_of(entry.batch_by_member ? members : 1, product_of(slices_of(program, type), bytes(type)));
        rest.inputs.batches = sum_of(rest.inputs.batches, product_of(static_cast<std::size_t>(entry.batches), slot));
      } else if (counted.insert(input.name).second) {
        std::size_t& item = rest.inputs.of(input.group);
        item = sum_of(item, product_of(members, held_bytes(program, input.value)));
      }
    }
    for (const Output& output : program.outputs) {
      rest.outputs = sum_of(rest.outputs, product_of(members, held_bytes(program, output.value)));
    }
  }
  return rest;
}

// The bytes of the inputs that a step replaces. The module passes these to the interpreter without a copy.
std::size_t donated_bytes(const Program& program) {
  std::size_t moved = 0;
  for (const Input& input : program.inputs) {
    if (input.next) moved = sum_of(moved, held_bytes(program, input.value));
  }
  return moved;
}

void add_rows(const Program& program, const std::vector<Equation>& equations, int depth, double times,
              std::vector<InstructionReport>& rows) {
  for (const Equation& equation : equations) {
    InstructionReport& row = rows.emplace_back();
    row.name = equation.op.name();
    row.equation = &equation;
    row.section = "all devices in order";
    row.depth = depth;
    if (!equation.results.empty()) {
      row.result = to_string(program.type(equation.results.front()), program.mesh);
      if (equation.results.size() > 1) row.result += ", ...";
    }
    row.implementation = "reference";
    if (equation.op.is_loop()) {
      const std::int64_t iterations = equation.op.loop().iterations;
      row.implementation = std::to_string(iterations) + " times";
      add_rows(program, equation.regions.front().equations, depth + 1, times * static_cast<double>(iterations), rows);
      continue;
    }
    row.kernel = true;
    const Cost cost = cost_of(program, equation);
    row.flops = times * cost.flops;
    row.bytes = times * cost.bytes;
  }
}

std::vector<InstructionReport> rows_of(const Program& program) {
  std::vector<InstructionReport> rows;
  add_rows(program, program.equations, 0, 1, rows);
  return rows;
}

StageReport stage_of(const std::vector<InstructionReport>& rows) {
  StageReport all;
  for (const InstructionReport& row : rows) all.serial += row.flops + row.bytes;
  all.total = all.serial;
  return all;
}

// The interpreter needs no plan.
class ReferencePlanned final : public Planned {
 public:
  using Planned::Planned;
  int workers() const override { return 1; }
  std::int64_t barriers_per_step(std::size_t) const override { return 0; }
  std::unique_ptr<Module> load() && override { return std::make_unique<ReferenceModule>(take_source()); }

 private:
  MemoryNeeds compute_needs() const override;
  PlanReport make_report(std::size_t entry) const override {
    std::vector<InstructionReport> rows = rows_of(*source().entries[entry].program);
    const StageReport stage = stage_of(rows);
    return {std::move(rows), {stage}};
  }
};

MemoryNeeds ReferencePlanned::compute_needs() const {
  const Resting rest = resting(source());
  std::size_t most = rest.total();
  for (const Entry& entry : source().entries) {
    most = std::max(most, sum_of(rest.total() - donated_bytes(*entry.program), interpreter_peak_bytes(*entry.program)));
  }
  MemoryNeeds needs = rest.inputs;
  needs.activations = most - needs.total();
  needs.pools = {{"parameters", needs.parameters, 1, "a copy for every device"},
                 {"state", needs.optimizer, 1, "a copy for every device"},
                 {"batches", needs.batches, 1, "batch inputs, filled ahead"},
                 {"values", needs.activations, 1, "outputs, and what is live at one time"}};
  return needs;
}

}  // namespace

ReferenceModule::ReferenceModule(Source given) : Module(std::move(given)) {
  resting_bytes_ = peak_bytes_ = resting(source()).total();
  const auto members = static_cast<std::size_t>(source().members);
  inputs_.resize(members);
  for (const Entry& entry : source().entries) {
    const Program& program = *entry.program;
    EntryState& state = entries_.emplace_back();
    state.slots.resize(static_cast<std::size_t>(entry.batches),
                       std::vector<Batch>(entry.batch_by_member ? members : 1));
    state.outputs.resize(members);
    for (const Input& input : program.inputs) {
      const Type& type = program.type(input.value);
      if (input.group == Group::batch) {
        for (std::vector<Batch>& slot : state.slots) {
          for (Batch& batch : slot) batch[input.name].resize(slices_of(program, type) * bytes(type));
        }
      } else {
        for (Values& values : inputs_) {
          values.try_emplace(input.name, devices_of(program), std::vector<std::byte>(bytes(type)));
        }
      }
    }
    for (const Output& output : program.outputs) {
      const Type& type = program.type(output.value);
      for (Values& values : state.outputs) {
        values[output.name] = PerDevice(devices_of(program), std::vector<std::byte>(bytes(type)));
      }
    }
  }
}

std::span<std::byte> ReferenceModule::batch(std::size_t entry, int slot, std::string_view input, std::int64_t member) {
  Batch& inputs = entries_[entry].slots[static_cast<std::size_t>(slot)][static_cast<std::size_t>(member)];
  const auto found = inputs.find(input);
  return found == inputs.end() ? std::span<std::byte>() : std::span(found->second);
}

Ticket ReferenceModule::queue(std::function<void()> work) {
  queue_.push_back(std::move(work));
  return {++queued_};
}

Ticket ReferenceModule::submit(std::size_t entry, int slot, std::int64_t steps, std::span<const std::int64_t> members) {
  const std::span<const std::int64_t> named = members_or_all(members);
  return queue([this, entry, slot, steps, who = std::vector(named.begin(), named.end())] {
    for (std::int64_t i = 0; i < steps; ++i) {
      for (std::int64_t member : who) run(entry, slot, static_cast<std::size_t>(member));
    }
  });
}

Ticket ReferenceModule::submit_traced(std::size_t entry, int slot, std::span<const std::int64_t> members,
                                      StepTrace& trace) {
  const std::span<const std::int64_t> named = members_or_all(members);
  return queue([this, entry, slot, &trace, who = std::vector(named.begin(), named.end())] {
    std::map<const Equation*, std::int32_t> rows;
    for (const InstructionReport& row : instructions(entry)) {
      rows.emplace(row.equation, static_cast<std::int32_t>(rows.size()));
    }
    std::vector<WorkSpan>& spans = trace.workers.emplace_back();
    trace.begin = Clock::now();
    for (const std::int64_t member : who) {
      const std::size_t task = spans.size();
      const Mesh& mesh = program(entry).mesh;
      spans.push_back({WorkKind::task,
                       -1,
                       member,
                       {AxisSet::first(static_cast<int>(mesh.axes().size())), 0, mesh.devices()},
                       Clock::now(),
                       {}});
      run(entry, slot, static_cast<std::size_t>(member),
          [&](const Equation& equation, Clock::time_point begin, Clock::time_point end) {
            // A loop needs no span of its own: its time is that of its body.
            if (equation.op.is_loop()) return;
            spans.push_back({WorkKind::instruction, rows.at(&equation), member, {}, begin, end});
          });
      spans[task].end = Clock::now();
    }
    trace.end = Clock::now();
  });
}

void ReferenceModule::run(std::size_t e, int slot, std::size_t member, const TimeObserver& time_observer) {
  EntryState& entry = entries_[e];
  const Program& program = this->program(e);
  Values values;
  for (const Input& input : program.inputs) {
    if (input.group != Group::batch) {
      PerDevice& held = inputs_[member].at(input.name);
      values[input.name] = input.next ? std::move(held) : held;
      continue;
    }
    const std::vector<Batch>& batches = entry.slots[static_cast<std::size_t>(slot)];
    const std::vector<std::byte>& memory = batches[batches.size() > 1 ? member : 0].at(input.name);
    const auto size = static_cast<std::ptrdiff_t>(bytes(program.type(input.value)));
    PerDevice& slices = values[input.name];
    for (std::int64_t d = 0; d < program.mesh.devices(); ++d) {
      const auto begin = memory.begin() + program.mesh.position(d, program.type(input.value).varying) * size;
      slices.emplace_back(begin, begin + size);
    }
  }
  InterpreterResult result = interpret(
      program, std::move(values),
      {.check_replicated = !source().private_copies, .blocks = source().blocks, .time_observer = time_observer});
  for (auto& [name, value] : result.updates) inputs_[member][name] = std::move(value);
  entry.outputs[member] = std::move(result.outputs);
  peak_bytes_ = std::max(peak_bytes_, resting_bytes_ - donated_bytes(program) + result.peak_bytes);
}

const std::string& ReferenceModule::name_of(const ModuleValue& input) const {
  return program(static_cast<std::size_t>(input.entry)).inputs[static_cast<std::size_t>(input.index)].name;
}

Ticket ReferenceModule::write_slices(Handle input, DeviceOfMember to, std::span<const std::byte> bytes,
                                     std::optional<std::size_t> offset) {
  return queue([this, input, to, bytes, offset] {
    const auto meant = [](std::int64_t wanted, std::size_t index) {
      return wanted == -1 || wanted == static_cast<std::int64_t>(index);
    };
    for (std::size_t m = 0; m < inputs_.size(); ++m) {
      if (!meant(to.member, m)) continue;
      PerDevice& slices = inputs_[m].at(name_of(value(input)));
      for (std::size_t d = 0; d < slices.size(); ++d) {
        if (!meant(to.device, d)) continue;
        const std::size_t begin = value(input).begin + offset.value_or(0);
        std::copy(bytes.begin(), bytes.end(), slices[d].begin() + static_cast<std::ptrdiff_t>(begin));
      }
    }
  });
}

Ticket ReferenceModule::read_slice(Handle handle, DeviceOfMember from, std::span<std::byte> into, std::size_t offset) {
  return queue([this, handle, from, into, offset] {
    const auto member = static_cast<std::size_t>(from.member);
    const ModuleValue& of = value(handle);
    const auto entry = static_cast<std::size_t>(of.entry);
    const PerDevice& slices =
        of.is_input
            ? inputs_[member].at(name_of(of))
            : entries_[entry].outputs[member].at(program(entry).outputs[static_cast<std::size_t>(of.index)].name);
    const std::vector<std::byte>& slice = slices[static_cast<std::size_t>(from.device)];
    std::copy_n(slice.begin() + static_cast<std::ptrdiff_t>(of.begin + offset), into.size(), into.begin());
  });
}

bool ReferenceModule::done(Ticket ticket) { return ticket.number <= carried_out_; }

void ReferenceModule::wait(Ticket ticket) {
  for (; carried_out_ < ticket.number; ++carried_out_) {
    const std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    if (failure_) continue;
    try {
      work();
    } catch (...) {
      failure_ = std::current_exception();
      failed_ = carried_out_ + 1;
    }
  }
  if (failure_ && ticket.number >= failed_) std::rethrow_exception(failure_);
}

std::size_t ReferenceModule::allocated() const { return peak_bytes_; }

std::vector<InstructionReport> ReferenceModule::instructions(std::size_t entry) const {
  return rows_of(program(entry));
}

std::vector<StageReport> ReferenceModule::stages(std::size_t entry) const { return {stage_of(instructions(entry))}; }

Profile ReferenceModule::profile(std::size_t entry, int slot, std::int64_t steps) {
  std::map<const Equation*, double> seconds;
  const TimeObserver add = [&](const Equation& equation, Clock::time_point ran_from, Clock::time_point until) {
    seconds[&equation] += seconds_between(ran_from, until);
  };
  const Clock::time_point begin = Clock::now();
  wait(queue([&] {
    for (std::int64_t i = 0; i < steps; ++i) {
      for (std::size_t member = 0; member < inputs_.size(); ++member) run(entry, slot, member, add);
    }
  }));
  Profile profile;
  profile.wall_seconds = seconds_since(begin) / static_cast<double>(steps);
  for (const InstructionReport& row : instructions(entry)) {
    profile.seconds.push_back(seconds[row.equation] / static_cast<double>(steps));
  }
  return profile;
}

std::unique_ptr<Planned> ReferenceBackend::plan(Source source, Processes processes) const {
  refuse_several(processes);
  return std::make_unique<ReferencePlanned>(std::move(source));
}

}  // namespace pmaptrain::reference
