// The first half of planning. It translates the equations of a program into instructions, assigns each instruction to a
// stage, and decides for each whether it runs on pieces, on chunks, as a task or on every worker. The second half is in
// plan.cpp.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "core/analysis/rows.h"
#include "core/runtime/cpu/plan.h"
#include "core/storage/storage.h"

namespace pmaptrain::cpu {

// How a value is stored, which also determines where the instructions that write it run.
enum class Storage : std::uint8_t {
  constant,  // one copy that no worker writes during steps: a constant, or a replicated batch input
  worker,    // a copy for each worker, which every worker computes for itself
  chunked,   // a slice for each instance, shared by all workers; computed in chunks or by tasks
  varying,   // a slice for each instance, or rows; computed on the pieces of a cut
};

struct ValueInfo {
  Storage storage = Storage::varying;
  // The value that represents this one in instructions. A value is its own root, except that a view has the root of its
  // operand.
  int root = -1;
  // If the value is an array inside a bucket: the root of the bucket, whose memory it shares, and the array's first
  // element in the bucket. Such a value is its own root. -1: the value has memory of its own.
  int bucket = -1;
  std::int64_t bucket_begin = 0;
  int stage = 0;  // the stage that writes the value; Lowering::first_readable_stage tells which stages may read it
  AxisSet axes;   // the value has one slice for each position along these axes
  int cut = -1;   // storage `varying`: the cut on whose pieces the value is computed
  RowKind kind = RowKind::whole;  // on a cut by rows: what a piece computes of the value
  // Whether tasks write the value in other units than the chunks or pieces of its storage, so that each reader needs a
  // later stage.
  bool written_by_tasks = false;
  bool by_one_task = false;           // storage `chunked`: an equation that is not cut writes the value
  std::int64_t contributions = 0;     // see Buffer
  bool complete_before_step = false;  // whether the value exists before the step begins: inputs and axis_index
};

// The result of lowering. Operands and results of its instructions are roots; plan.cpp replaces them by buffers.
struct Lowered {
  const Program* program = nullptr;
  PlanOptions options;
  Facts facts;
  RowFacts rows;
  StorageFacts storage_facts;
  std::vector<ValueInfo> values;   // by value: first the program's values, then those that add_like() and others added
  std::vector<Type> copied_types;  // the types of the added values
  std::vector<Stage> stages;
  std::vector<StageLoop> loops;   // see Plan
  std::int64_t target = 1;        // the approximate number of pieces of a cut
  std::set<std::uint32_t> mixed;  // AxisSet::bits(): a kernel reads or writes values over these axes and over others
  std::vector<Cut> cuts;
  std::vector<Accumulator> accumulators;
  std::shared_ptr<std::deque<Equation>> added_equations = std::make_shared<std::deque<Equation>>();  // see Plan
  std::vector<std::pair<int, const Equation*>> constants, coordinates;
  std::vector<int> outputs;  // roots, in the program's order
  // The roots of inputs and of the values that replace them, in the order of StorageFacts::updates.
  std::vector<std::pair<int, int>> updates;
  std::set<int> read_across_pieces;  // roots of which a piece reads slices that other pieces have written
  std::set<int> packed;              // the results of all PackOperand instructions

  ValueInfo& info(int id) { return values[static_cast<std::size_t>(id)]; }
  const ValueInfo& info(int id) const { return values[static_cast<std::size_t>(id)]; }
  const Type& type(int id) const {
    const std::size_t index = static_cast<std::size_t>(id), own = program->types.size();
    return index < own ? program->types[index] : copied_types[index - own];
  }
  // Adds a value with memory of its own, and with the type and otherwise the ValueInfo of value `id`.
  int add_like(int id);
  // Adds a value for an array of `shape` inside bucket `id`, at element `begin` of it.
  int add_range(int id, std::int64_t begin, Shape shape);
  // The root that owns the memory: for an array inside a bucket the bucket, else `root` itself.
  int memory_root(int root) const { return info(root).bucket >= 0 ? info(root).bucket : root; }
  // Adds an instruction to a stage. `like` describes the results of the instruction; its storage, axes and cut
  // determine the list. `elements` is the number of elements that are cut into chunks, if like.storage is `chunked`.
  void add(Instruction instruction, const ValueInfo& like, int stage, std::int64_t elements);
  // The list of a stage for chunks of arrays with `elements` elements and an array for each position along `axes`. The
  // first call adds it. Likewise the list of a stage for the pieces of a cut.
  ChunkList& chunk_list(int stage, std::int64_t elements, AxisSet axes);
  std::vector<Instruction>& piece_instructions(int stage, int cut);
  // The innermost loop over stages that contains a stage; null outside of such loops.
  const StageLoop* loop_of(int stage) const;
  Share share() const { return Share(program->mesh, options.blocks, options.placement); }
  // Adds a cut, whose pieces are known. Returns its index.
  int add_cut(Cut cut);
  // The index of the cut into whole instances along `axes`. The first call adds the cut.
  int cut_of(AxisSet axes);
  // The index of the cut of the rows of values that vary over `axes`; -1 if they are not cut by rows.
  int rows_cut_of(AxisSet axes) const;
  bool is_by_rows(int cut) const { return cut >= 0 && cuts[static_cast<std::size_t>(cut)].rows_per_instance > 0; }
};

// Lowers a program. Cuts have about `target` pieces.
Lowered lower(const Program& program, const PlanOptions& options, std::int64_t target);

}  // namespace pmaptrain::cpu
