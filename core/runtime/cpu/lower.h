// The first half of planning: decides which work is replicated and which varies, which instructions and pieces it is
// divided into, and in which stage each instruction runs.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "core/analysis/rows.h"
#include "core/runtime/cpu/plan.h"
#include "core/storage/storage.h"

namespace pmaptrain::cpu {

// How a value is stored. It is one value for the whole mesh unless it is `varying`, or `chunked` with axes.
enum class Class : std::uint8_t { constant, worker, chunked, varying };

struct ValueInfo {
  Class of = Class::varying;
  int root = -1;  // the value whose memory this one uses; views share the memory of their operand
  // Of a range of a bucket: the bucket, which is a root, and the first element. Such a value is its own root.
  int within = -1;
  std::int64_t begin = 0;
  int stage = 0;  // the first stage whose instructions of the same class may read it; a barrier separates stages
  AxisSet axes;   // axes along which each instance has its own slice
  int cut = -1;   // class varying: the cut on which its instructions run
  RowKind kind = RowKind::whole;  // on a cut by rows: which part of it a piece has
  // Class chunked only: tasks write it in units other than chunks, so readers need a later stage.
  bool by_task = false;
  bool complete = false;  // whether it is complete before the step begins
};

// In these instructions ids are values (roots); in a plan they are buffers.
struct Lowered {
  const Program* program = nullptr;
  Facts facts;
  RowFacts rows;
  Storage storage;
  std::vector<ValueInfo> values;   // by value; includes copies that the program does not have
  std::vector<Type> copied_types;  // types of these copies
  std::vector<Stage> stages;
  std::vector<StageLoop> loops;  // see Plan
  std::int64_t target = 1;       // approximate number of pieces of a cut
  bool varies_in_parts = false;  // whether some values vary over fewer axes than others
  std::vector<Cut> cuts;
  std::vector<Accumulator> accumulators;
  std::shared_ptr<std::deque<Equation>> sums = std::make_shared<std::deque<Equation>>();  // see Plan
  std::vector<std::pair<int, const Equation*>> constants, coordinates;
  std::vector<int> outputs;  // roots, in the program's order
  // The roots of inputs and of the values that replace them, in the order of Storage::updates.
  std::vector<std::pair<int, int>> updates;
  std::set<int> exchanged;  // roots of which a piece reads slices that other pieces write
  std::set<int> packed;     // copies in the layout of the kernel that reads them

  ValueInfo& info(int id) { return values[static_cast<std::size_t>(id)]; }
  const ValueInfo& info(int id) const { return values[static_cast<std::size_t>(id)]; }
  const Type& type(int id) const {
    const std::size_t index = static_cast<std::size_t>(id), own = program->types.size();
    return index < own ? program->types[index] : copied_types[index - own];
  }
  // Adds a value with the type, instances and stage of an existing one.
  int add_like(int id);
  // Adds a value for the elements of bucket `id` from `begin` on, as an array of `shape`.
  int add_range(int id, std::int64_t begin, Shape shape);
  // The root whose memory has the value: the bucket, for a range of one.
  int memory_of(int root) const { return info(root).within >= 0 ? info(root).within : root; }
  // Adds an instruction to a stage. `like` describes the results of the instruction: their class and axes. `elements`
  // is the size of the results.
  void add(Instruction instruction, const ValueInfo& like, int stage, std::int64_t elements);
  // The stage's instructions on chunks of arrays that have `elements` elements and one instance for each position along
  // `axes`; and its instructions on the pieces of a cut.
  Chunked& chunked(int stage, std::int64_t elements, AxisSet axes);
  std::vector<Instruction>& pieces(int stage, int cut);
  // The innermost loop over stages that contains a stage; null outside of such loops.
  const StageLoop* loop_of(int stage) const;
  // The cut into whole instances along `axes`. It is made on the first call.
  int cut_of(AxisSet axes);
};

// Cuts work into about `target` pieces.
Lowered lower(const Program& program, const PlanOptions& options, std::int64_t target);

}  // namespace pmaptrain::cpu
