#include "core/runtime/backend.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/saturate.h"

namespace pmaptrain {

std::size_t MemoryNeeds::total() const {
  return sum_of(parameters, state, data, batches, gradients, temporaries, kernels, programs, workspaces);
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
    std::vector<Variable> handled;  // the buckets first
    for (std::size_t i = 0; i < program.inputs.size(); ++i) {
      const Input& input = program.inputs[i];
      if (!input.parts.empty()) handled.push_back({input.name, input.group, program.type(input.value), i, 0});
    }
    handled.insert(handled.end(), variables_.back().begin(), variables_.back().end());
    for (const Variable& variable : handled) {
      if (variable.group == Group::batch) continue;
      const auto [at, is_new] = inputs_.try_emplace(variable.name, static_cast<std::int32_t>(values_.size()));
      if (is_new) {
        const Input& input = program.inputs[variable.input];
        const bool is_divided = !input.sharded.empty() && variable.name != input.name;
        values_.push_back({variable.type, static_cast<std::int32_t>(e), static_cast<std::int32_t>(variable.input), true,
                           variable.begin, is_divided ? inputs_.at(input.name) : -1});
        continue;
      }
      const ModuleValue& known = values_[static_cast<std::size_t>(at->second)];
      const Program& first = *source_.entries[static_cast<std::size_t>(known.entry)].program;
      const std::string& whole = first.inputs[static_cast<std::size_t>(known.index)].name;
      const bool same_place = known.begin == variable.begin && whole == program.inputs[variable.input].name;
      if (known.type == variable.type && same_place && first.mesh == program.mesh) continue;
      fail_running("input '" + std::string(variable.name) + "' is " + to_string(known.type, first.mesh) +
                   " in the entry '" + source_.entries[static_cast<std::size_t>(known.entry)].name + "' and " +
                   to_string(variable.type, program.mesh) + (same_place ? "" : " of another bucket") +
                   " in the entry '" + source_.entries[e].name + "'");
    }
    std::map<std::string_view, std::int32_t>& outputs = outputs_.emplace_back();
    for (std::size_t i = 0; i < program.outputs.size(); ++i) {
      const Output& output = program.outputs[i];
      outputs.try_emplace(output.name, static_cast<std::int32_t>(values_.size()));
      values_.push_back(
          {program.type(output.value), static_cast<std::int32_t>(e), static_cast<std::int32_t>(i), false});
    }
  }
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
  check_member(member);
  if (!member_share_.has(member)) return;
  if (value(input).bucket < 0) return fill_slices(input, member, make);
  Module::fill_slices(input, member, make);
}

void Module::clear(Handle input) {
  if (value(input).bucket < 0) return clear_slices(input);
  Module::clear_slices(input);
}

AxisSet Module::shard_axes(Handle part) const {
  const ModuleValue& of = value(part);
  return program(static_cast<std::size_t>(of.entry)).inputs[static_cast<std::size_t>(of.index)].sharded;
}

bool Module::is_sharded(Handle handle) const {
  if (value(handle).bucket < 0) return false;
  return share(static_cast<std::size_t>(value(handle).entry)).divides(shard_axes(handle));
}

template <class F>
void Module::for_each_shard(Handle part, std::size_t offset, std::size_t size, F&& f) const {
  const std::size_t shard = slice_bytes({value(part).bucket});
  for (std::size_t done = 0; done < size;) {
    const std::size_t at = value(part).begin + offset + done;
    const std::size_t count = std::min(size - done, shard - at % shard);
    f(at / shard, at % shard, done, count);
    done += count;
  }
}

Ticket Module::write(Handle input, DeviceOfMember to, std::span<const std::byte> bytes,
                     std::optional<std::size_t> offset) {
  if (to.member != every_member) {
    check_member(to.member);
    if (!member_share_.has(to.member)) return {};
  }
  check_write(input, to, bytes.size(), offset);
  if (value(input).bucket < 0) return write_slices(input, to, bytes, offset);
  const Handle bucket{value(input).bucket};
  const Mesh& mesh = mesh_of(input);
  const AxisSet axes = shard_axes(input);
  Ticket last;
  for_each_shard(input, offset.value_or(0), bytes.size(),
                 [&](std::size_t place, std::size_t begin, std::size_t done, std::size_t count) {
                   for (std::int64_t d = 0; d < mesh.devices(); ++d) {
                     if (mesh.position(d, axes) != static_cast<std::int64_t>(place) || !has(bucket, d)) continue;
                     if (to.device != every_device &&
                         mesh.position(d, mesh.all() - axes) != mesh.position(to.device, mesh.all() - axes))
                       continue;
                     last = write_slices(bucket, {d, to.member}, bytes.subspan(done, count), begin);
                   }
                 });
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
  const int own = processes_.placement.process;
  std::vector<Transport::Outgoing> sends;
  std::vector<Transport::Incoming> receives;
  for (std::size_t m = 0; m < members.size(); ++m) {
    const std::span<std::byte> of_member = bytes.subspan(m * size, size);
    const int sender = member_share_.first_process(members[m]);
    for (int process = 0; process < processes_.placement.processes; ++process) {
      if (member_share_.carries(process, members[m]) || process != to.value_or(process)) continue;
      if (own == sender) sends.push_back({process, of_member.data(), size});
      if (own == process) receives.push_back({sender, of_member.data(), size});
    }
  }
  if (!sends.empty() || !receives.empty()) processes_.transport->exchange(sends, receives);
}

Ticket Module::read_in_group(Handle handle, DeviceOfMember from, std::span<std::byte> into, std::size_t offset,
                             std::optional<int> to) {
  check_read(handle, from, offset, into.size());
  if (value(handle).bucket < 0) return read_slice(handle, from, into, offset);
  const Handle bucket{value(handle).bucket};
  const Mesh& mesh = mesh_of(handle);
  const AxisSet axes = shard_axes(handle);
  const Share share = this->share(static_cast<std::size_t>(value(handle).entry));
  const bool divided = is_sharded(handle);
  const int first_process = member_share_.first_process();
  const std::vector<std::int64_t> group = mesh.group(from.device, axes);
  std::vector<Transport::Outgoing> sends;
  std::vector<Transport::Incoming> receives;
  Ticket last;
  const auto read_shard = [&](std::size_t place, std::size_t begin, std::size_t done, std::size_t count) {
    const std::span<std::byte> memory = into.subspan(done, count);
    if (!divided) {
      last = read_slice(bucket, {group[place], from.member}, memory, begin);
      return;
    }
    // The process that has the first device with this shard sends it to the others.
    const std::int64_t device = mesh.device_at(static_cast<std::int64_t>(place), axes);
    const int owner = share.process_of(device);
    if (owner == share.process()) last = read_slice(bucket, {device, from.member}, memory, begin);
    for (int process = 0; process < share.processes(); ++process) {
      if (process == owner || process != to.value_or(process)) continue;
      if (owner == share.process()) sends.push_back({first_process + process, memory.data(), count});
      if (process == share.process()) receives.push_back({first_process + owner, memory.data(), count});
    }
  };
  for_each_shard(handle, offset, into.size(), read_shard);
  if (!divided) return last;
  wait(last);
  processes_.transport->exchange(sends, receives);
  return last;
}

Handle Module::input(std::string_view name) const {
  const auto found = inputs_.find(name);
  if (found == inputs_.end()) fail_running("the module has no input '" + std::string(name) + "'");
  return {found->second};
}

void Module::read_every_device(Handle value, std::int64_t member, std::span<std::byte> into) {
  check_member(member);
  if (member_share_.has(member)) read_every_device_here(value, member, into);
  share_of_members({&member, 1}, into);
}

void Module::read_every_device_here(Handle value, std::int64_t member, std::span<std::byte> into) {
  const std::size_t slice = slice_bytes(value);
  const Share share = this->share(static_cast<std::size_t>(this->value(value).entry));
  const auto part_of = [&](int process) {
    const IndexRange devices = share.devices(process);
    return into.subspan(static_cast<std::size_t>(devices.first) * slice,
                        static_cast<std::size_t>(devices.count) * slice);
  };
  const IndexRange own = share.devices();
  Ticket last;
  for (std::int64_t i = 0; i < own.count; ++i) {
    const std::span<std::byte> memory = part_of(share.process()).subspan(static_cast<std::size_t>(i) * slice, slice);
    last = read_here(value, {own.first + i, member}, memory);
  }
  wait(last);
  if (share.is_whole()) return;
  std::vector<Transport::Outgoing> sends;
  std::vector<Transport::Incoming> receives;
  const std::span<const std::byte> mine = part_of(share.process());
  const int first_process = member_share_.first_process();
  for (int process = 0; process < share.processes(); ++process) {
    if (process == share.process()) continue;
    sends.push_back({first_process + process, mine.data(), mine.size()});
    receives.push_back({first_process + process, part_of(process).data(), part_of(process).size()});
  }
  processes_.transport->exchange(sends, receives);
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
    if (input.group == Group::data && source_.members > 1) refuse("is kept once for all members");
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
