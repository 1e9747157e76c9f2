// The first half of planning: which work is replicated and which varies, in which instructions it is carried out, on
// what pieces, and in which stage each runs.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "core/analysis/rows.h"
#include "core/runtime/cpu/plan.h"

namespace pmaptrain::cpu {

// How a value comes to be. Everything but `varying`, and what is `chunked` over axes, is one value for the whole mesh.
enum class Class : std::uint8_t { constant, worker, chunked, varying };

struct ValueInfo {
  Class of = Class::varying;
  int root = -1;  // the value whose memory this one is (views share their operand's)
  int stage = 0;  // from which instructions of the same class may read it; barriers stand between stages
  AxisSet axes;   // one slice for each instance along these
  int cut = -1;   // of class varying: which cut its instructions run on
  RowKind kind = RowKind::whole;  // on a cut by rows: what a piece has of it
  bool by_task = false;   // of class chunked: written by tasks of other shapes than chunks, so in a stage of its own
  bool complete = false;  // before the step begins
};

// Instructions refer to values (their roots) where a plan's refer to buffers.
struct Lowered {
  const Program* program = nullptr;
  Facts facts;
  Rows rows;
  std::vector<ValueInfo> values;   // by value; more than the program's where values had to be copied
  std::vector<Type> copied_types;  // of those
  std::vector<Stage> stages;
  std::int64_t target = 1;       // pieces of a cut, about
  bool varies_in_parts = false;  // whether some values vary over fewer axes than others
  std::vector<Cut> cuts;
  std::vector<Accumulator> accumulators;
  std::shared_ptr<std::deque<Equation>> sums = std::make_shared<std::deque<Equation>>();  // see Plan
  std::vector<std::pair<int, const Equation*>> constants, coordinates;
  std::vector<int> outputs;                  // roots, in the program's order
  std::vector<std::pair<int, int>> updates;  // input root, root of the value that replaces it; copied unless in place
  std::set<int> exchanged;                   // roots that others than the writing piece read, by instance
  std::set<int> packed;                      // copied values in the layout of the kernel that reads them

  ValueInfo& info(int id) { return values[static_cast<std::size_t>(id)]; }
  const ValueInfo& info(int id) const { return values[static_cast<std::size_t>(id)]; }
  const Type& type(int id) const {
    const std::size_t index = static_cast<std::size_t>(id), own = program->types.size();
    return index < own ? program->types[index] : copied_types[index - own];
  }
  // A value with the type, the instances and the stage of an existing one.
  int add_like(int id);
  // `like`: a value whose class, instances and elements are those of what the instruction computes.
  void add(Instruction instruction, const ValueInfo& like, int stage, std::int64_t elements);
  // A stage's list for chunks of arrays of so many elements, or for the pieces of a cut.
  Chunked& chunked(int stage, std::int64_t elements, AxisSet axes);
  std::vector<Instruction>& pieces(int stage, int cut);
  // The cut into whole instances along `axes`.
  int cut_of(AxisSet axes);
};

// `target`: the pieces to cut into, at most.
Lowered lower(const Program& program, const PlanOptions& options, std::int64_t target);

}  // namespace pmaptrain::cpu
