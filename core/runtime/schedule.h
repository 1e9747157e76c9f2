// The first half of planning: which work is invariant and which varies, and in which stage each piece runs.
#pragma once

#include <set>
#include <vector>

#include "core/runtime/plan.h"

namespace pmaptrain {

// How a value comes to be. Everything but `varying` is one value for the whole mesh.
enum class Class : std::uint8_t { constant, worker, split, varying };

struct ValueInfo {
  Class of = Class::varying;
  int root = -1;          // the value whose storage this one is (views share their operand's)
  int stage = 0;          // from which steps of the same class may read it; barriers stand between stages
  bool stacked = false;   // of class varying: one slice per device
  bool in_parts = false;  // of class split: written in other ranges than it is read in, so in a stage of its own
};

// Steps refer to values (their roots) where a plan's refer to buffers.
struct Schedule {
  const Program* program = nullptr;
  std::vector<ValueInfo> values;   // by value; more than the program's where values had to be copied
  std::vector<Type> copied_types;  // of those
  std::vector<Stage> stages;
  std::vector<Accumulator> accumulators;
  std::vector<std::pair<int, const Equation*>> constants, coordinates;
  std::vector<int> outputs;                  // roots, in the program's order
  std::vector<std::pair<int, int>> updates;  // input root, root of the value that replaces it; copied unless in place
  std::set<int> exchanged;                   // roots that other devices read

  const Type& type(int value) const {
    const auto at = static_cast<std::size_t>(value);
    return at < program->types.size() ? program->types[at] : copied_types[at - program->types.size()];
  }
  // A value like `like`, of its class and stage, with storage of its own.
  int add_like(int like);
};

// Refers to the program. `blocks`: into how many the devices are cut.
Schedule make_schedule(const Program& program, const PlanOptions& options, std::int64_t blocks);

}  // namespace pmaptrain
