// Instructions bound to kernels and addresses for one worker, ready to run.
//
// A list of commands is bound for each piece, chunk or part, with places in the pools. Its pointers are set anew where
// the memory at hand is another (locate): of another step, slot or member. Kernels are made once per shape.
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

// The memory that a list runs on.
struct Origin {
  int parity = 0;  // of the step: which set of accumulators
  int slot = 0;    // of the batch
  std::int64_t member = 0;
  friend bool operator==(const Origin&, const Origin&) = default;
};

struct Address {
  Base base = Base::arena;
  std::size_t offset = 0;
};

struct Command;

// Of all these, `at` is where the first of their pointers is in the list.
struct RunKernel {  // operands, then results
  CpuKernel* kernel = nullptr;
  std::size_t at = 0, operands = 0;
};
struct CopyRuns {  // from, to: `count` runs of `bytes`; in an iteration of a loop `per_iteration` further on in `from`
  std::size_t at = 0;
  std::size_t bytes = 0, count = 0, from_stride = 0, to_stride = 0, per_iteration = 0;
};
struct Pack {  // from, to
  CpuPreparation* preparation = nullptr;
  std::size_t at = 0;
};
using ExchangeFunction = void (*)(const void* op, const CollectiveCall& call);
struct Reduce {  // `members` of them, then the result
  const void* op = nullptr;
  ExchangeFunction function = nullptr;
  std::size_t at = 0;
  const Type* type = nullptr;  // of the list
  std::size_t members = 0;
};
struct RunExchange {  // `members` operands of a group, and elsewhere the result of its member `member`
  const void* op = nullptr;
  ExchangeFunction function = nullptr;
  std::size_t at = 0, to = 0;
  const Type *operand = nullptr, *result = nullptr;  // of the program
  std::size_t members = 0;
  std::int64_t member = 0;
};
struct RunLoop {
  std::int64_t iterations = 0;
  std::vector<CopyRuns> slices, before;
  std::vector<Command> body;
};

struct Command {
  const Instruction* instruction = nullptr;  // of the plan
  std::variant<RunKernel, CopyRuns, Pack, Reduce, RunExchange, RunLoop> what;
};

// Run one after another by one worker.
struct CommandList {
  std::vector<Command> commands;
  std::vector<Address> addresses;
  std::vector<std::byte*> pointers;          // of these addresses at `origin`
  std::vector<std::unique_ptr<Type>> types;  // that commands refer to
  std::vector<ConstArray> members;           // room for those of any reduction
  Origin origin{-1};
  Instances instances = {};  // for a trace: the instances that the list works on

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
  // The members of a reduction or a collective: where the first is.
  std::size_t add(const std::vector<Address>& of) {
    const std::size_t first = addresses.size();
    members.resize(std::max(members.size(), of.size()));
    for (const Address& member : of) add(member);
    return first;
  }
  // The members of a reduction, then its result.
  void add(const std::vector<Address>& of, const Address& result) {
    add(of);
    add(result);
  }
};

// Gives back the room that the list has for more.
void shrink(CommandList& list);
// What the list takes.
std::size_t bytes_of(const CommandList& list);

using Bases = std::array<std::byte*, base_count>;

// Sets the list's pointers, where they are not those of this origin already. `bases` has the origin's parity and slot.
void locate(CommandList& list, const Origin& origin, const Bases& bases);
// Runs a command of a list that is located.
void run(Command& command, CommandList& list, std::byte* scratch);
void run_copy(const CopyRuns& copy, const CommandList& list, std::int64_t iteration = 0);

}  // namespace pmaptrain::cpu
