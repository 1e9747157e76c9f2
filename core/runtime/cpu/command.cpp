#include "core/runtime/cpu/command.h"

#include <cstring>
#include <variant>

namespace pmaptrain::cpu {
namespace {

void run(RunKernel& command, const CommandList& list, std::byte* scratch) {
  std::byte* const* const first = list.pointers.data() + command.first_pointer;
  command.kernel->run({first, first + command.operands, scratch});
}

void run(Pack& command, const CommandList& list, std::byte* scratch) {
  command.preparation->run(list.pointers[command.first_pointer], list.pointers[command.first_pointer + 1], scratch);
}

void run(Reduce& command, CommandList& list, std::byte*) {
  for (std::size_t i = 0; i < command.addends; ++i)
    list.operand_arrays[i] = {command.type, list.pointers[command.first_pointer + i]};
  const std::span<const ConstArray> operands = std::span(list.operand_arrays).first(command.addends);
  const Array result{command.type, list.pointers[command.first_pointer + command.addends]};
  command.function(command.op, {{&operands, 1}, 0, {&result, 1}, command.tree});
}

void run(RunExchange& command, CommandList& list, std::byte*) {
  for (std::size_t i = 0; i < command.devices; ++i)
    list.operand_arrays[i] = {command.operand, list.pointers[command.first_pointer + i]};
  const std::span<const ConstArray> operands = std::span(list.operand_arrays).first(command.devices);
  const Array result{command.result, list.pointers[command.result_pointer]};
  command.function(command.op, {{&operands, 1}, command.position, {&result, 1}, {}});
}

void run(RunCommunication& command, CommandList& list, std::byte*) {
  for (const StridedCopy& copy : command.copies) run_copy(copy, list);
  command.outgoing.clear();
  command.incoming.clear();
  for (const auto& [to, pointer, bytes] : command.sends)
    command.outgoing.push_back({to, list.pointers[pointer], bytes});
  for (const auto& [from, pointer, bytes] : command.receives) {
    command.incoming.push_back({from, list.pointers[pointer], bytes});
  }
  command.transport->exchange(command.outgoing, command.incoming);
}

void run(RunLoop& command, CommandList& list, std::byte* scratch) {
  for (const StridedCopy& copy : command.carry_copies) run_copy(copy, list);
  for (std::int64_t k = 0; k < command.iterations; ++k) {
    for (const StridedCopy& slice : command.slice_copies) run_copy(slice, list, k);
    for (Command& inner : command.body) run(inner, list, scratch);
  }
}

void run(StridedCopy& command, const CommandList& list, std::byte*) { run_copy(command, list, list.iteration); }

}  // namespace

void resolve_addresses(CommandList& list, const MemorySelection& selection, const Bases& bases) {
  if (list.located_for == selection) return;
  list.located_for = selection;
  for (std::size_t i = 0; i < list.addresses.size(); ++i) {
    const Address& address = list.addresses[i];
    list.pointers[i] = bases[static_cast<std::size_t>(address.base)] + address.offset;
  }
}

void run_copy(const StridedCopy& copy, const CommandList& list, std::int64_t iteration) {
  if (copy.bytes == 0) return;  // memory without elements may have no address
  const std::byte* const from =
      list.pointers[copy.first_pointer] + static_cast<std::size_t>(iteration) * copy.per_iteration;
  std::byte* const to = list.pointers[copy.first_pointer + 1];
  for (std::size_t i = 0; i < copy.count; ++i) {
    std::memcpy(to + i * copy.to_stride, from + i * copy.from_stride, copy.bytes);
  }
}

void run(Command& command, CommandList& list, std::byte* scratch) {
  std::visit([&](auto& what) { run(what, list, scratch); }, command.action);
}

namespace {

void shrink(std::vector<Command>& commands) {
  commands.shrink_to_fit();
  for (Command& command : commands) {
    if (auto* const loop = std::get_if<RunLoop>(&command.action)) shrink(loop->body);
  }
}

template <class T>
std::size_t bytes_in(const std::vector<T>& vector) {
  return vector.capacity() * sizeof(T);
}

std::size_t bytes_of(const std::set<std::vector<TreeNode>>& trees) {
  std::size_t bytes = 0;
  for (const std::vector<TreeNode>& tree : trees) bytes += sizeof(std::vector<TreeNode>) + bytes_in(tree);
  return bytes;
}

std::size_t bytes_of(const std::vector<Command>& commands) {
  std::size_t bytes = bytes_in(commands);
  for (const Command& command : commands) {
    const auto* const loop = std::get_if<RunLoop>(&command.action);
    if (loop != nullptr) bytes += bytes_in(loop->slice_copies) + bytes_in(loop->carry_copies) + bytes_of(loop->body);
    const auto* const messages = std::get_if<RunCommunication>(&command.action);
    if (messages == nullptr) continue;
    bytes += bytes_in(messages->sends) + bytes_in(messages->receives) + bytes_in(messages->copies) +
             bytes_in(messages->outgoing) + bytes_in(messages->incoming);
  }
  return bytes;
}

}  // namespace

void shrink(CommandList& list) {
  shrink(list.commands);
  list.addresses.shrink_to_fit();
  list.pointers.shrink_to_fit();
}

std::size_t bytes_of(const CommandList& list) {
  return sizeof list + bytes_of(list.commands) + bytes_in(list.addresses) + bytes_in(list.pointers) +
         list.types.size() * sizeof(Type) + bytes_of(list.trees) + bytes_in(list.operand_arrays);
}

}  // namespace pmaptrain::cpu
