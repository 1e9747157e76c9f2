// The plan of a program: what runs where, in which order, in which memory. Fixed before the first step, from the
// program alone and never from the number of workers, so that a config gives the same bits on any number of them.
//
// Logical devices are cut into blocks (core/mesh). Work on values that vary over the mesh runs block by block; work on
// values that are the same everywhere runs once, split between workers, or in every worker when it is small. Stages
// are separated by a barrier among workers; a collective ends one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/program.h"
#include "core/mesh/mesh.h"

namespace pmaptrain {

struct PlanOptions {
  // Every logical device keeps its own copy of every value, also of those that are the same everywhere, for the whole
  // run: what verify_replicas compares. Same bits.
  bool private_copies = false;
  // Blocks to cut the devices into, at most; 0: as many as the program's work is worth. The bits depend on it.
  std::int64_t blocks = 0;
};

// Who holds a value.
enum class Home : std::uint8_t {
  constant,  // one copy, filled when the plan is loaded
  worker,    // one copy per worker, each of which computes it for itself: small and the same on every device
  shared,    // one copy, computed in parts by all workers: larger and the same on every device
  device,    // one slice per logical device, kept through the step
  arena,     // one slice per device of the block at hand, in the worker's scratch memory
  scratch,   // one for the block at hand, the same for its devices, in the worker's scratch memory
};
std::string_view to_string(Home home);

// Invariant values of at most this many elements live in every worker.
inline constexpr std::int64_t small_elements = 4096;
// What is computed in parts (Step::parts) has so many: as many workers can share it.
inline constexpr std::int64_t most_parts = max_blocks;
// Parts begin at multiples of so many rows: a product's inner loops take them in groups.
inline constexpr std::int64_t part_alignment = 16;
// Slices and whole values begin at multiples of this many bytes.
inline constexpr std::size_t alignment = 64;

struct Buffer {
  Home home = Home::arena;
  DType dtype = DType::f32;
  std::int64_t elements = 0;  // of one slice (device, arena) or of the whole
  std::size_t offset = 0;     // in its pool; for device: where device 0's slice is; slices are contiguous
  std::size_t slice_bytes() const { return size_of(dtype) * static_cast<std::size_t>(elements); }
  bool stacked() const { return home == Home::device || home == Home::arena; }
};

// One instruction.
struct Step {
  enum class Kind : std::uint8_t {
    kernel,      // an op on local values
    copy,        // operands[0] to results[0]
    accumulate,  // reduce one operand of a collective over the devices of a block, into the block's accumulator
    combine,     // reduce the blocks' accumulators, in index order, to a result
    exchange,    // a collective that reads other devices' slices
    loop,        // `body`, `iterations` times
  };
  Kind kind = Kind::kernel;
  const Equation* equation = nullptr;  // of the plan's program; null for a copy
  std::vector<Type> operand_types, result_types;
  std::vector<int> operands, results;  // buffers
  int accumulator = -1;                // accumulate, combine
  // kernel: the op runs once over the rows of all devices of a block, and its results, sums over those rows, go
  // straight into these accumulators. Then there are no `results`.
  std::vector<int> row_sums;
  bool split = false;  // invariant work of which each worker does a range of elements
  // Split kernel: the op runs over the rows of all devices at once, and its result, a sum over those rows, is computed
  // in so many parts, each of some rows of the result (part_begin), of which each worker does some.
  std::int64_t parts = 0;

  // loop: operands[k] is cut into `iterations` parts per device; part i is copied to slices[k] before iteration i.
  std::int64_t iterations = 0;
  std::vector<int> slices;
  std::vector<Step> before;  // carries take their initial values
  std::vector<Step> body;
};

// The row of the result with which part `part` of `parts` begins, of `rows`: by these numbers alone.
std::int64_t part_begin(std::int64_t rows, std::int64_t parts, std::int64_t part);

struct Stage {
  std::vector<Step> invariant;  // first: by every worker (or in ranges)
  std::vector<Step> varying;    // then: for each block, by the worker that has it
};

struct Accumulator {
  DType dtype = DType::f32;
  std::int64_t elements = 0;
  std::size_t offset = 0;  // in the pool of accumulators, for block 0; blocks follow at `accumulator_stride`
};

// A worker carries several of its blocks at once while their arenas are together at most this large: the rows of all
// their devices are then one batch, which meets the weights once, and what it passes on still lies in a near cache.
inline constexpr std::size_t near_bytes = std::size_t{1} << 20;

// Bytes of each pool. What one process holds with W workers and B blocks, of which a worker carries C at once, is
// constants + shared + devices + W·(worker + C·arena) + 2·B·accumulators. Sums end at `most_bytes`.
struct PoolSizes {
  std::size_t constants = 0, worker = 0, shared = 0, devices = 0, arena = 0, accumulators = 0;
  // The most blocks that one of so many workers carries at once.
  std::int64_t blocks_at_once(std::int64_t workers, std::int64_t blocks) const;
  std::size_t total(std::int64_t workers, std::int64_t blocks) const;
};

struct Plan {
  std::shared_ptr<const Program> program;
  PlanOptions options;
  std::vector<Block> blocks;
  std::vector<Buffer> buffers;
  std::vector<Accumulator> accumulators;
  std::vector<Stage> stages;
  std::vector<std::pair<int, const Equation*>> constants;    // buffers to fill when loaded, by this op
  std::vector<std::pair<int, const Equation*>> coordinates;  // device buffers that hold axis_index
  std::vector<int> inputs, outputs;                          // buffers, in the program's order
  PoolSizes pools;
  bool boundary_barrier = false;  // whether workers must meet at the end of a step

  // Meetings of all workers in one step, when several steps run without the host between them.
  std::int64_t barriers_per_step() const {
    return static_cast<std::int64_t>(stages.size()) - 1 + (boundary_barrier ? 1 : 0);
  }
};

// Throws Error (usage) for what the runtime cannot carry out: a collective inside a loop.
Plan make_plan(std::shared_ptr<const Program> program, const PlanOptions& options = {});

// The plan as text: stages, steps, homes and offsets. Names no worker, no library and no instruction set.
std::string to_text(const Plan& plan);

}  // namespace pmaptrain
