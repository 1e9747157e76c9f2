#include "core/runtime/backend.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/graph/stacked_layout.h"

namespace pmaptrain {
namespace {

// Memory that processes send each other in one exchange.
class Messages {
 public:
  explicit Messages(const Processes& processes) : processes_(processes) {}

  // Process `from` sends the memory to process `to`, where it is that of the same array.
  void add(int from, int to, std::span<std::byte> memory) {
    const int own = processes_.placement.process;
    if (from == to) return;
    if (own == from) sends_.push_back({to, memory.data(), memory.size()});
    if (own == to) receives_.push_back({from, memory.data(), memory.size()});
  }
  void exchange() {
    if (!sends_.empty() || !receives_.empty()) processes_.transport->exchange(sends_, receives_);
  }

 private:
  const Processes& processes_;
  std::vector<Transport::Outgoing> sends_;
  std::vector<Transport::Incoming> receives_;
};

}  // namespace

std::size_t MemoryBytes::total() const {
  std::size_t total = 0;
  for (const auto purpose : purposes) total = sum_of(total, this->*purpose);
  return total;
}

Module::Module(Source source, Processes processes, bool divides_members)
    : source_(std::move(source)),
      processes_(processes),
      member_share_(source_.members, processes.placement, divides_members) {
  const IndexRange own = member_share_.members();
  for (std::int64_t i = 0; i < own.count; ++i) own_members_.push_back(own.first + i);
  for (std::size_t e = 0; e < source_.entries.size(); ++e) {
    const Program& program = *source_.entries[e].program;
    variables_.push_back(variables_of(program));
    for (std::size_t i = 0; i < program.inputs.size(); ++i) add_input(e, i);
    for (std::size_t k = 0; k < variables_.back().size(); ++k) add_variable(e, k);
    std::map<std::string_view, std::int32_t>& outputs = outputs_.emplace_back();
    for (std::size_t i = 0; i < program.outputs.size(); ++i) {
      const Output& output = program.outputs[i];
      outputs.try_emplace(output.name, static_cast<std::int32_t>(values_.size()));
      values_.push_back(
          {program.type(output.value), static_cast<std::int32_t>(e), static_cast<std::int32_t>(i), false});
    }
  }
}

void Module::add_input(std::size_t entry, std::size_t index) {
  const Program& program = *source_.entries[entry].program;
  const Input& input = program.inputs[index];
  if (input.group == Group::batch) return;
  const Type& type = program.type(input.value);
  const auto [at, is_new] = stored_.try_emplace(input.name, static_cast<std::int32_t>(values_.size()));
  if (!is_new) return check_same(input.name, at->second, type, entry, true);
  values_.push_back({type, static_cast<std::int32_t>(entry), static_cast<std::int32_t>(index), true});
  if (!input.parts.empty()) inputs_.try_emplace(input.name, at->second);
}

void Module::add_variable(std::size_t entry, std::size_t k) {
  const Program& program = *source_.entries[entry].program;
  const Variable& variable = variables_[entry][k];
  if (variable.group == Group::batch) return;
  const std::int32_t stored = stored_.at(program.inputs[variable.input].name);
  const auto [at, is_new] = inputs_.try_emplace(variable.name, static_cast<std::int32_t>(values_.size()));
  if (is_new) {
    const std::size_t begin = static_cast<std::size_t>(variable.begin) * size_of(variable.type.dtype);
    values_.push_back({variable.type, static_cast<std::int32_t>(entry), static_cast<std::int32_t>(variable.input), true,
                       begin, stored, variable.divided.empty() ? -1 : static_cast<std::int32_t>(k)});
    return;
  }
  const std::vector<Variable>& first = variables_[static_cast<std::size_t>(value({at->second}).entry)];
  const auto known =
      std::find_if(first.begin(), first.end(), [&](const Variable& other) { return other.name == variable.name; });
  const bool same_place =
      known != first.end() && known->begin == variable.begin && known->layout == variable.layout &&
      known->divided == variable.divided && value({at->second}).stored == stored &&
      source_.entries[static_cast<std::size_t>(value({at->second}).entry)].program->inputs[known->input].layout ==
          program.inputs[variable.input].layout;
  check_same(variable.name, at->second, variable.type, entry, same_place);
}

void Module::check_same(std::string_view name, std::int32_t id, const Type& type, std::size_t entry,
                        bool same_place) const {
  const ModuleValue& known = value({id});
  const Entry& first = source_.entries[static_cast<std::size_t>(known.entry)];
  const Mesh &mesh = source_.entries[entry].program->mesh, &first_mesh = first.program->mesh;
  if (known.type == type && same_place && first_mesh == mesh) return;
  fail_running("input '" + std::string(name) + "' is " + to_string(known.type, first_mesh) + " in the entry '" +
               first.name + "' and " + to_string(type, mesh) + (same_place ? "" : " of another bucket") +
               " in the entry '" + source_.entries[entry].name + "'");
}

std::span<const std::int64_t> Module::members_or_all(std::span<const std::int64_t> members) const {
  if (members.empty()) return own_members_;
  const auto begin = std::lower_bound(members.begin(), members.end(), own_members_.front());
  return {begin, std::upper_bound(begin, members.end(), own_members_.back())};
}

Ticket Module::submit_each(std::size_t entry, int slot, int count, std::span<const std::int64_t> members) {
  Ticket last;
  for (int i = 0; i < count; ++i) last = submit(entry, slot + i, 1, members);
  return last;
}

void Module::fill_slices(Handle input, std::int64_t member, const std::function<void(std::span<std::byte>)>& make) {
  std::vector<std::byte> value(slice_bytes(input));
  make(value);
  wait(write(input, {every_device, member}, value));
}

void Module::clear_slices(Handle input) {
  const std::vector<std::byte> zeros(slice_bytes(input));
  wait(write(input, {every_device, every_member}, zeros));
}

void Module::fill(Handle input, std::int64_t member, const std::function<void(std::span<std::byte>)>& make) {
  if (member != every_member) {
    check_member(member);
    if (!member_share_.has(member)) return;
  }
  if (!has_parts(input)) return fill_slices(input, member, make);
  Module::fill_slices(input, member, make);
}

void Module::clear(Handle input) {
  if (!has_parts(input)) return clear_slices(input);
  Module::clear_slices(input);
}

const Variable& Module::variable_of(Handle handle) const {
  const ModuleValue& of = value(handle);
  return variables_[static_cast<std::size_t>(of.entry)][static_cast<std::size_t>(of.variable)];
}

bool Module::is_sharded(Handle handle) const {
  return has_parts(handle) && share(static_cast<std::size_t>(value(handle).entry)).divides(variable_of(handle).divided);
}

std::vector<Module::LocalCopy> Module::local_copies(Handle handle, std::size_t offset, std::size_t bytes) const {
  const ModuleValue& of = value(handle);
  const std::size_t size = size_of(of.type.dtype);
  if (offset % size != 0 || bytes % size != 0) fail_running("a range of bytes that ends within an element");
  const auto count_of = [&](std::size_t in_bytes) { return static_cast<std::int64_t>(in_bytes / size); };
  const auto bytes_of = [&](std::int64_t count) { return static_cast<std::size_t>(count) * size; };
  std::vector<LocalCopy> copies;
  for (const StridedCopy& copy :
       copies_of(program(static_cast<std::size_t>(of.entry)), variable_of(handle), count_of(offset), count_of(bytes))) {
    copies.push_back({copy.device, bytes_of(copy.local), bytes_of(copy.logical), bytes_of(copy.run),
                      static_cast<std::size_t>(copy.times), bytes_of(copy.stride), bytes_of(copy.local_stride)});
  }
  return copies;
}

void Module::LocalCopy::gather(std::span<const std::byte> range, std::span<std::byte> runs) const {
  for (std::size_t i = 0; i < times; ++i) std::memcpy(&runs[i * local_stride], &range[logical + i * stride], run);
}

void Module::LocalCopy::scatter(std::span<const std::byte> runs, std::span<std::byte> range) const {
  for (std::size_t i = 0; i < times; ++i) std::memcpy(&range[logical + i * stride], &runs[i * local_stride], run);
}

Ticket Module::write(Handle input, DeviceOfMember to, std::span<const std::byte> bytes,
                     std::optional<std::size_t> offset) {
  if (to.member != every_member) {
    check_member(to.member);
    if (!member_share_.has(to.member)) return {};
  }
  check_write(input, to, bytes.size(), offset);
  if (!has_parts(input)) return write_slices(input, to, bytes, offset);
  const Mesh& mesh = mesh_of(input);
  const AxisSet axes = variable_of(input).divided, others = mesh.all() - axes;
  Ticket last;
  for (const LocalCopy& copy : local_copies(input, offset.value_or(0), bytes.size())) {
    std::vector<std::byte> runs;
    if (copy.times > 1) {
      runs.resize(copy.bytes());
      copy.gather(bytes, runs);
    }
    const std::span<const std::byte> source = copy.times > 1 ? runs : bytes.subspan(copy.logical, copy.run);
    for (std::int64_t d = 0; d < mesh.devices(); ++d) {
      if (mesh.position(d, axes) != mesh.position(copy.device, axes) || !has(stored(input), d)) continue;
      if (to.device != every_device && mesh.position(d, others) != mesh.position(to.device, others)) continue;
      last = write_slices(stored(input), {d, to.member}, source, copy.local);
    }
    wait(last);
  }
  return last;
}

Ticket Module::read(Handle handle, DeviceOfMember from, std::span<std::byte> into, std::size_t offset,
                    std::optional<int> to) {
  if (member_share_.is_whole()) return read_in_group(handle, from, into, offset, to);
  check_member(from.member);
  Ticket last;
  if (member_share_.has(from.member)) {
    const bool is_to_group = to && member_share_.carries(*to, from.member);
    const int first = member_share_.first_process();
    last = read_in_group(handle, from, into, offset, to ? std::optional(is_to_group ? *to - first : 0) : std::nullopt);
    wait(last);
  }
  share_of_members({&from.member, 1}, into, to);
  return last;
}

Ticket Module::read_here(Handle handle, DeviceOfMember from, std::span<std::byte> into, std::size_t offset) {
  return read_in_group(handle, from, into, offset, std::nullopt);
}

void Module::share_of_members(std::span<const std::int64_t> members, std::span<std::byte> bytes,
                              std::optional<int> to) {
  if (member_share_.is_whole() || members.empty()) return;
  const std::size_t size = bytes.size() / members.size();
  Messages messages(processes_);
  for (std::size_t m = 0; m < members.size(); ++m) {
    for (int process = 0; process < processes_.placement.processes; ++process) {
      if (member_share_.carries(process, members[m]) || process != to.value_or(process)) continue;
      messages.add(member_share_.first_process(members[m]), process, bytes.subspan(m * size, size));
    }
  }
  messages.exchange();
}

Ticket Module::read_in_group(Handle handle, DeviceOfMember from, std::span<std::byte> into, std::size_t offset,
                             std::optional<int> to) {
  check_read(handle, from, offset, into.size());
  if (!has_parts(handle)) return read_slice(handle, from, into, offset);
  const Handle local = stored(handle);
  const Mesh& mesh = mesh_of(handle);
  const AxisSet axes = variable_of(handle).divided;
  const Share share = this->share(static_cast<std::size_t>(value(handle).entry));
  const bool exchanges = is_sharded(handle);
  const int first_process = member_share_.first_process();
  const std::vector<std::int64_t> group = mesh.group(from.device, axes);
  const std::vector<LocalCopy> copies = local_copies(handle, offset, into.size());
  std::vector<std::vector<std::byte>> runs(copies.size());  // of those that are several
  Messages messages(processes_);
  Ticket last;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const LocalCopy& copy = copies[i];
    if (copy.times > 1) runs[i].resize(copy.bytes());
    const std::span<std::byte> memory = copy.times > 1 ? runs[i] : into.subspan(copy.logical, copy.run);
    if (!exchanges) {
      const std::int64_t device = group[static_cast<std::size_t>(mesh.position(copy.device, axes))];
      last = read_slice(local, {device, from.member}, memory, copy.local);
      continue;
    }
    // The process that has the first device with this part sends it to the others.
    const int owner = share.process_of(copy.device);
    if (owner == share.process()) last = read_slice(local, {copy.device, from.member}, memory, copy.local);
    for (int process = 0; process < share.processes(); ++process) {
      if (process != to.value_or(process)) continue;
      messages.add(first_process + owner, first_process + process, memory);
    }
  }
  const bool is_strided =
      std::any_of(copies.begin(), copies.end(), [](const LocalCopy& copy) { return copy.times > 1; });
  if (exchanges || is_strided) wait(last);
  messages.exchange();
  for (std::size_t i = 0; i < copies.size(); ++i) {
    if (copies[i].times > 1) copies[i].scatter(runs[i], into);
  }
  return last;
}

Handle Module::input(std::string_view name) const {
  const auto found = inputs_.find(name);
  if (found == inputs_.end()) fail_running("the module has no input '" + std::string(name) + "'");
  return {found->second};
}

void Module::read_every_instance(Handle value, std::int64_t member, std::span<std::byte> into) {
  check_member(member);
  if (member_share_.has(member)) read_every_instance_here(value, member, into);
  share_of_members({&member, 1}, into);
}

void Module::read_every_instance_here(Handle value, std::int64_t member, std::span<std::byte> into) {
  const Share share = this->share(static_cast<std::size_t>(this->value(value).entry));
  const Layout all = stacked_layout(type(value), share.mesh());
  const std::size_t size = size_of(type(value).dtype);
  if (has_parts(value) || into.size() != static_cast<std::size_t>(numel(all.logical)) * size) {
    fail_running("a read of all instances takes memory for each, of a value that devices do not divide");
  }
  Messages messages(processes_);
  Ticket last;
  for (const StridedCopy& copy : copies_of(all, share.mesh(), 0, numel(all.logical))) {
    const std::span<std::byte> instance =
        into.subspan(static_cast<std::size_t>(copy.logical) * size, static_cast<std::size_t>(copy.run) * size);
    const int owner = share.process_of(copy.device), first = member_share_.first_process();
    if (owner == share.process()) last = read_here(value, {copy.device, member}, instance);
    for (int process = 0; process < share.processes(); ++process) {
      messages.add(first + owner, first + process, instance);
    }
  }
  wait(last);
  messages.exchange();
}

Handle Module::output(std::size_t entry, std::string_view name) const {
  const auto found = outputs_[entry].find(name);
  if (found == outputs_[entry].end()) {
    fail_running("the entry '" + source_.entries[entry].name + "' has no output '" + std::string(name) + "'");
  }
  return {found->second};
}

bool Module::has(Handle handle, std::int64_t device) const {
  const Mesh& mesh = program(static_cast<std::size_t>(value(handle).entry)).mesh;
  const AxisSet axes = source_.private_copies ? mesh.all() : type(handle).varying;
  const Share share(mesh, source_.blocks, member_share_.within_group());
  return share.has_instance(mesh.position(device, axes), axes, share.process());
}

std::string Module::name_of(Handle handle) const {
  for (const auto& [name, id] : inputs_) {
    if (id == handle.id) return std::string(name);
  }
  return {};
}

void Module::check_device(Handle handle, std::int64_t device) const {
  const std::int64_t devices = program(static_cast<std::size_t>(value(handle).entry)).mesh.devices();
  if (device >= 0 && device < devices) return;
  fail_running("there is no logical device " + std::to_string(device) + " of " + std::to_string(devices));
}

void Module::check_member(std::int64_t member) const {
  if (member >= 0 && member < source_.members) return;
  fail_running("there is no member " + std::to_string(member) + " of " + std::to_string(source_.members));
}

void Module::check_write(Handle handle, DeviceOfMember instance, std::size_t size,
                         std::optional<std::size_t> offset) const {
  const ModuleValue& of = value(handle);
  const Input& input = program(static_cast<std::size_t>(of.entry)).inputs[static_cast<std::size_t>(of.index)];
  const auto refuse = [&](const std::string& what) { fail_running("input '" + name_of(handle) + "' " + what); };
  if (offset ? *offset + size > slice_bytes(handle) : size != slice_bytes(handle)) {
    refuse("takes " + std::to_string(slice_bytes(handle)) + " bytes, not " + std::to_string(size) +
           (offset ? " from byte " + std::to_string(*offset) + " on" : ""));
  }
  if (instance.member != every_member) {
    check_member(instance.member);
    if (is_of_all_members(input.group) && source_.members > 1) refuse("is kept once for all members");
  }
  if (instance.device == every_device) return;
  check_device(handle, instance.device);
  if (type(handle).varying.empty() && !source().private_copies) {
    refuse("is kept once for all devices");
  }
  if (!has(handle, instance.device)) refuse("of device " + std::to_string(instance.device) + " is in another process");
}

void Module::check_read(Handle handle, DeviceOfMember instance, std::size_t offset, std::size_t size) const {
  check_member(instance.member);
  check_device(handle, instance.device);
  if (offset + size > slice_bytes(handle)) {
    fail_running("a read past the end of a value of " + std::to_string(slice_bytes(handle)) + " bytes");
  }
  if (!has(handle, instance.device)) {
    fail_running("the value of device " + std::to_string(instance.device) + " is in another process");
  }
}

void Backend::refuse_several(const Processes& processes) const {
  if (processes.placement.processes == 1) return;
  throw Error(ExitStatus::usage, Diagnostic{"mesh",
                                            {},
                                            "the backend " + std::string(name()) + " runs in one process, not in " +
                                                std::to_string(processes.placement.processes),
                                            "backend: cpu runs in several",
                                            {}});
}

const MemoryNeeds& Planned::needs() const {
  if (!needs_) needs_ = compute_needs();
  return *needs_;
}

const PlanReport& Planned::report(std::size_t entry) const {
  if (!reports_[entry]) reports_[entry] = make_report(entry);
  return *reports_[entry];
}

}  // namespace pmaptrain
