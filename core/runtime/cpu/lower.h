// The first half of planning: which work is replicated and which varies, in which instructions it is carried out, and
// in which stage each runs.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "core/runtime/cpu/plan.h"

namespace pmaptrain::cpu {

// How a value comes to be. Everything but `varying` is one value for the whole mesh.
enum class Class : std::uint8_t { constant, worker, chunked, varying };

struct ValueInfo {
  Class of = Class::varying;
  int root = -1;         // the value whose memory this one is (views share their operand's)
  int stage = 0;         // from which instructions of the same class may read it; barriers stand between stages
  bool stacked = false;  // of class varying: one slice per device
  bool by_task = false;  // of class chunked: written by tasks of other shapes than chunks, so in a stage of its own
};

// Instructions refer to values (their roots) where a plan's refer to buffers.
struct Lowered {
  const Program* program = nullptr;
  Facts facts;
  std::vector<ValueInfo> values;   // by value; more than the program's where values had to be copied
  std::vector<Type> copied_types;  // of those
  std::vector<Stage> stages;
  std::vector<Accumulator> accumulators;
  std::vector<std::pair<int, const Equation*>> constants, coordinates;
  std::vector<int> outputs;                  // roots, in the program's order
  std::vector<std::pair<int, int>> updates;  // input root, root of the value that replaces it; copied unless in place
  std::set<int> exchanged;                   // roots that other devices read
  std::set<int> packed;                      // roots of prepared operands

  const Type& type(int value) const {
    const auto at = static_cast<std::size_t>(value);
    return at < program->types.size() ? program->types[at] : copied_types[at - program->types.size()];
  }
  ValueInfo& info(int value) { return values[static_cast<std::size_t>(value)]; }
  const ValueInfo& info(int value) const { return values[static_cast<std::size_t>(value)]; }
  // A value like `like`, of its class and stage, with memory of its own.
  int add_like(int like);
  // Appends an instruction on values of class `of` to a stage, which is made where there is none.
  void add(Instruction instruction, Class of, int stage, std::int64_t elements);
  // The chunked work of a stage on arrays of so many elements.
  Chunked& chunked(int stage, std::int64_t elements);
};

// Refers to the program. `pieces`: into how many the devices are cut.
Lowered lower(const Program& program, const PlanOptions& options, std::int64_t pieces);

}  // namespace pmaptrain::cpu
