// Instructions bound to kernels and addresses for one worker, ready to run.
//
// A command list is bound for each piece, chunk or part. It stores addresses as offsets in memory pools. When it runs
// on the memory of another step, slot or member, locate() computes its pointers again. Kernels are created once per
// shape.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "core/kernel/cpu.h"
#include "core/runtime/cpu/memory.h"
#include "core/runtime/trace.h"

namespace pmaptrain::cpu {

// Identifies the memory that a command list runs on.
struct Origin {
  int parity = 0;  // step number modulo 2, which selects one of two sets of accumulators
  int slot = 0;    // slot of the batch
  std::int64_t member = 0;
  friend bool operator==(const Origin&, const Origin&) = default;
};

struct Address {
  Base base = Base::arena;
  std::size_t offset = 0;
};

struct Command;

// In each command, `at` is the index of its first pointer in the list.
struct RunKernel {  // pointers: operands, then results
  CpuKernel* kernel = nullptr;
  std::size_t at = 0, operands = 0;
};
// Pointers: from, to. Copies `count` runs of `bytes`; in iteration k of a loop `from` is advanced by k * per_iteration.
struct CopyRuns {
  std::size_t at = 0;
  std::size_t bytes = 0, count = 0, from_stride = 0, to_stride = 0, per_iteration = 0;
};
struct Pack {  // pointers: from, to
  CpuPreparation* preparation = nullptr;
  std::size_t at = 0;
};
using ExchangeFunction = void (*)(const void* op, const CollectiveCall& call);
struct Reduce {  // pointers: `members` operands, then the result
  const void* op = nullptr;
  ExchangeFunction function = nullptr;
  std::size_t at = 0;
  const Type* type = nullptr;  // owned by the list
  std::size_t members = 0;
};
struct RunExchange {  // pointers: `members` operands of a group at `at`, and at `to` the result of member `member`
  const void* op = nullptr;
  ExchangeFunction function = nullptr;
  std::size_t at = 0, to = 0;
  const Type *operand = nullptr, *result = nullptr;  // types of the program
  std::size_t members = 0;
  std::int64_t member = 0;
};
struct RunLoop {
  std::int64_t iterations = 0;
  std::vector<CopyRuns> slices, before;
  std::vector<Command> body;
};

struct Command {
  const Instruction* instruction = nullptr;  // the instruction of the plan
  std::variant<RunKernel, CopyRuns, Pack, Reduce, RunExchange, RunLoop> what;
};

// Commands that one worker runs one after another.
struct CommandList {
  std::vector<Command> commands;
  std::vector<Address> addresses;
  std::vector<std::byte*> pointers;          // the addresses resolved for `origin`
  std::vector<std::unique_ptr<Type>> types;  // types that commands refer to
  std::vector<ConstArray> members;           // scratch array, large enough for the members of any reduction
  Origin origin{-1};
  std::int64_t iteration = 0;  // of the innermost loop over stages
  Instances instances = {};    // for a trace: the instances that the list computes

  const Type* flat(DType dtype, std::int64_t elements) {
    const Type type{dtype, {elements}, {}};
    const auto known = std::find_if(types.begin(), types.end(), [&](const auto& each) { return *each == type; });
    return (known != types.end() ? *known : types.emplace_back(std::make_unique<Type>(type))).get();
  }
  std::size_t add(const Address& address) {
    addresses.push_back(address);
    pointers.push_back(nullptr);
    return addresses.size() - 1;
  }
  // Adds the members of a reduction or a collective. Returns the index of the first.
  std::size_t add(const std::vector<Address>& of) {
    const std::size_t first = addresses.size();
    members.resize(std::max(members.size(), of.size()));
    for (const Address& member : of) add(member);
    return first;
  }
  // Adds the members of a reduction, then its result.
  void add(const std::vector<Address>& of, const Address& result) {
    add(of);
    add(result);
  }
};

// Releases unused capacity.
void shrink(CommandList& list);
// The memory of the list in bytes.
std::size_t bytes_of(const CommandList& list);

using Bases = std::array<std::byte*, base_count>;

// Resolves the list's addresses for `origin` unless they already are. `bases` must match the parity and slot of
// `origin`.
void locate(CommandList& list, const Origin& origin, const Bases& bases);
// Runs a command of a list whose addresses are resolved.
void run(Command& command, CommandList& list, std::byte* scratch);
void run_copy(const CopyRuns& copy, const CommandList& list, std::int64_t iteration = 0);

}  // namespace pmaptrain::cpu
