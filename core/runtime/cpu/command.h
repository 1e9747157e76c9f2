// Instructions bound to kernels and addresses for one worker, ready to run.
//
// There is a command list for each task of a stage, and one for the instructions that every worker repeats. It stores
// addresses as offsets in memory pools. Before it runs on the memory of another step, slot or member,
// resolve_addresses() computes its pointers again.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <variant>
#include <vector>

#include "core/kernel/cpu.h"
#include "core/runtime/cpu/memory.h"
#include "core/runtime/trace.h"
#include "core/runtime/transport.h"

namespace pmaptrain::cpu {

// Selects the memory that a command list runs on, where a module has several copies.
struct MemorySelection {
  int parity = 0;           // of the step number: selects one of the sets of accumulators
  int slot = 0;             // selects a batch of the entry
  std::int64_t member = 0;  // selects the values of a member of an ensemble
  std::size_t place = 0;    // of the piece among those that the worker runs abreast: selects its arena
  friend bool operator==(const MemorySelection&, const MemorySelection&) = default;
};

// An offset in bytes from the begin of a memory block.
struct Address {
  Base base = Base::arena;
  std::size_t offset = 0;
};

struct Command;

// In each command, `first_pointer` is the index of its first pointer in CommandList::pointers.

// Runs a kernel. Pointers: the operands, then the results.
struct RunKernel {
  CpuKernel* kernel = nullptr;
  std::size_t first_pointer = 0, operands = 0;
};
// Copies `count` blocks of `bytes` bytes; the strides are the distances between blocks. In iteration k of a loop it
// reads from an address that is k * per_iteration bytes further on. Pointers: the source, then the target.
struct StridedCopy {
  std::size_t first_pointer = 0;
  std::size_t bytes = 0, count = 0, from_stride = 0, to_stride = 0, per_iteration = 0;
};
// Packs an operand. Pointers: the operand, then the packed operand.
struct Pack {
  CpuPreparation* preparation = nullptr;
  std::size_t first_pointer = 0;
};
// Computes what one device of a group receives from a collective.
using CollectiveFunction = void (*)(const void* op, const CollectiveCall& call);
// Reduces arrays of one type. Pointers: the `addends` arrays, then the result. `tree`: see CollectiveCall.
struct Reduce {
  const void* op = nullptr;
  CollectiveFunction function = nullptr;
  std::size_t first_pointer = 0;
  const Type* type = nullptr;  // owned by the list
  std::size_t addends = 0;
  std::span<const TreeNode> tree = {};  // owned by the list
};
// Computes what device `position` of a group of `devices` devices receives in a collective. Pointers: the operands of
// all devices of the group, which several commands may share. `result_pointer` is the index of the result's pointer.
struct RunExchange {
  const void* op = nullptr;
  CollectiveFunction function = nullptr;
  std::size_t first_pointer = 0, result_pointer = 0;
  const Type *operand = nullptr, *result = nullptr;  // owned by the program
  std::size_t devices = 0;
  std::int64_t position = 0;
};
// Exchanges messages with other processes. A message is `bytes` bytes at a pointer.
struct RunCommunication {
  struct Message {
    int process = 0;
    std::size_t pointer = 0, bytes = 0;
  };
  Transport* transport = nullptr;
  std::vector<Message> sends, receives;
  std::vector<StridedCopy> copies;  // of what this process needs of its own values
  std::vector<Transport::Outgoing> outgoing;
  std::vector<Transport::Incoming> incoming;
};
// Runs a Loop: see there.
struct RunLoop {
  std::int64_t iterations = 0;
  std::vector<StridedCopy> slice_copies, carry_copies;
  std::vector<Command> body;
};

struct Command {
  const Instruction* instruction = nullptr;  // the instruction that was bound
  std::variant<RunKernel, StridedCopy, Pack, Reduce, RunExchange, RunCommunication, RunLoop> action;
};

// Commands that one worker runs one after another.
struct CommandList {
  std::vector<Command> commands;
  std::vector<Address> addresses;
  std::vector<std::byte*> pointers;          // the addresses, resolved for the memory `located_for`
  std::vector<std::unique_ptr<Type>> types;  // types that commands refer to
  std::set<std::vector<TreeNode>> trees;     // that commands refer to
  std::vector<ConstArray> operand_arrays;    // scratch of Reduce and RunExchange, which pass their operands in it
  MemorySelection located_for{-1};
  std::int64_t iteration = 0;    // of the innermost loop over stages
  InstanceRange instances = {};  // the instances that the list computes, for a trace

  // The type of an array of one dimension, owned by the list.
  const Type* flat_type(DType dtype, std::int64_t elements) {
    const Type type{dtype, {elements}, {}};
    const auto known = std::find_if(types.begin(), types.end(), [&](const auto& each) { return *each == type; });
    return (known != types.end() ? *known : types.emplace_back(std::make_unique<Type>(type))).get();
  }
  // The same tree, owned by the list. Empty if it has one node.
  std::span<const TreeNode> keep(const std::vector<TreeNode>& tree) {
    if (tree.size() <= 1) return {};
    return *trees.insert(tree).first;
  }
  // Adds an address. Returns the index of its pointer.
  std::size_t add(const Address& address) {
    addresses.push_back(address);
    pointers.push_back(nullptr);
    return addresses.size() - 1;
  }
  // Adds the operands of a Reduce or RunExchange. Returns the index of the first pointer.
  std::size_t add(const std::vector<Address>& operands) {
    const std::size_t first = addresses.size();
    operand_arrays.resize(std::max(operand_arrays.size(), operands.size()));
    for (const Address& operand : operands) add(operand);
    return first;
  }
  // Adds the operands of a Reduce, then its result.
  void add(const std::vector<Address>& operands, const Address& result) {
    add(operands);
    add(result);
  }
};

// Releases unused capacity.
void shrink(CommandList& list);
// The memory of the list in bytes.
std::size_t bytes_of(const CommandList& list);

// The address of each memory block, by Base.
using Bases = std::array<std::byte*, base_count>;

// Computes the list's pointers for the selected memory, unless they already point there. `bases` are the addresses of
// that memory.
void resolve_addresses(CommandList& list, const MemorySelection& selection, const Bases& bases);
// Runs a command of a list whose addresses are resolved.
void run(Command& command, CommandList& list, std::byte* scratch);
// Carries out a StridedCopy of `list`, as in iteration `iteration` of a loop. The list's addresses must be resolved.
void run_copy(const StridedCopy& copy, const CommandList& list, std::int64_t iteration = 0);

}  // namespace pmaptrain::cpu
