#include "core/runtime/cpu/command.h"

#include <cstring>
#include <variant>

namespace pmaptrain::cpu {
namespace {

void run(RunKernel& command, const CommandList& list, std::byte* scratch) {
  std::byte* const* const first = list.pointers.data() + command.at;
  command.kernel->run({first, first + command.operands, scratch});
}

void run(Pack& command, const CommandList& list, std::byte* scratch) {
  command.preparation->run(list.pointers[command.at], list.pointers[command.at + 1], scratch);
}

void run(Reduce& command, CommandList& list, std::byte*) {
  for (std::size_t m = 0; m < command.members; ++m) list.members[m] = {command.type, list.pointers[command.at + m]};
  const std::span<const ConstArray> members = std::span(list.members).first(command.members);
  const Array result{command.type, list.pointers[command.at + command.members]};
  command.function(command.op, {{&members, 1}, 0, {&result, 1}});
}

void run(RunExchange& command, CommandList& list, std::byte*) {
  for (std::size_t m = 0; m < command.members; ++m) list.members[m] = {command.operand, list.pointers[command.at + m]};
  const std::span<const ConstArray> members = std::span(list.members).first(command.members);
  const Array result{command.result, list.pointers[command.to]};
  command.function(command.op, {{&members, 1}, command.member, {&result, 1}});
}

void run(RunLoop& command, CommandList& list, std::byte* scratch) {
  for (const CopyRuns& copy : command.before) run_copy(copy, list);
  for (std::int64_t k = 0; k < command.iterations; ++k) {
    for (const CopyRuns& slice : command.slices) run_copy(slice, list, k);
    for (Command& inner : command.body) run(inner, list, scratch);
  }
}

void run(CopyRuns& command, const CommandList& list, std::byte*) { run_copy(command, list, list.iteration); }

}  // namespace

void locate(CommandList& list, const Origin& origin, const Bases& bases) {
  if (list.origin == origin) return;
  list.origin = origin;
  for (std::size_t i = 0; i < list.addresses.size(); ++i) {
    const Address& address = list.addresses[i];
    list.pointers[i] = bases[static_cast<std::size_t>(address.base)] + address.offset;
  }
}

void run_copy(const CopyRuns& copy, const CommandList& list, std::int64_t iteration) {
  if (copy.bytes == 0) return;  // memory without elements may have no address
  const std::byte* const from = list.pointers[copy.at] + static_cast<std::size_t>(iteration) * copy.per_iteration;
  std::byte* const to = list.pointers[copy.at + 1];
  for (std::size_t i = 0; i < copy.count; ++i) {
    std::memcpy(to + i * copy.to_stride, from + i * copy.from_stride, copy.bytes);
  }
}

void run(Command& command, CommandList& list, std::byte* scratch) {
  std::visit([&](auto& what) { run(what, list, scratch); }, command.what);
}

namespace {

void shrink(std::vector<Command>& commands) {
  commands.shrink_to_fit();
  for (Command& command : commands) {
    if (auto* const loop = std::get_if<RunLoop>(&command.what)) shrink(loop->body);
  }
}

template <class T>
std::size_t bytes_in(const std::vector<T>& vector) {
  return vector.capacity() * sizeof(T);
}

std::size_t bytes_of(const std::vector<Command>& commands) {
  std::size_t bytes = bytes_in(commands);
  for (const Command& command : commands) {
    const auto* const loop = std::get_if<RunLoop>(&command.what);
    if (loop != nullptr) bytes += bytes_in(loop->slices) + bytes_in(loop->before) + bytes_of(loop->body);
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
         list.types.size() * sizeof(Type) + bytes_in(list.members);
}

}  // namespace pmaptrain::cpu
