// The plan of a program for CPU threads: what runs where, in which order and in which memory. It is made before the
// first step from the program alone, never from the number of workers, so results do not depend on that number.
//
// A value that varies over some axes has one instance for each position along these axes. Work that keeps or sums rows
// is cut into ranges of the rows of all instances, whatever the number of devices. Other work on varying values is cut
// into blocks of whole instances. Work on replicated values is repeated by every worker if it is small, and otherwise
// done once, in chunks of elements. A barrier separates stages; each collective ends a stage.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/saturate.h"
#include "core/graph/program.h"
#include "core/mesh/mesh.h"
#include "core/runtime/cpu/instruction.h"

namespace pmaptrain::cpu {

// The memory pool of a buffer.
enum class Pool : std::uint8_t {
  constant,  // one copy, filled when the plan is loaded
  worker,    // one copy per worker, which each computes for itself: small replicated values
  shared,    // one copy, computed in chunks: larger replicated values
  device,    // one slice per instance, for the whole step
  batch,     // batch inputs: one slice per instance
  arena,     // the rows or slices of the current piece, in the worker's temporary memory
  piece,     // one value for the current piece, in the worker's temporary memory
  // Packed operands, one copy. Sizes and offsets are known once kernels exist; until then an offset is an index of
  // operands.
  packed,
};
std::string_view to_string(Pool pool);

enum class Layout : std::uint8_t {
  row_major,
  packed,  // the layout that its kernel reads (PackOperand)
};

struct Buffer {
  DType dtype = DType::f32;
  Layout layout = Layout::row_major;
  AxisSet axes;  // axes over which there are distinct instances
  // If positive: one slice for each of so many pieces, as for sums over rows that cross a barrier.
  std::int64_t pieces = 0;
  Pool pool = Pool::arena;
  // Whether it outlives a run of the entry, as inputs and outputs do. Other memory is shared by all entries of a
  // module.
  bool persistent = false;
  std::int64_t elements = 0;  // per slice
  std::size_t offset = 0;     // offset of the first slice in its pool
  // Of a range of a bucket: where it begins there, in elements. The bucket has `bucket` elements; 0: it is no range.
  std::int64_t begin = 0, bucket = 0;
  std::size_t slice_bytes() const { return size_of(dtype) * static_cast<std::size_t>(elements); }
};

// Memory for partial sums: one array for each piece of a cut.
struct Accumulator {
  DType dtype = DType::f32;  // may be wider than the type of the addends
  std::int64_t elements = 0;
  int cut = 0;
  std::size_t offset = 0;  // offset of the first piece's array
  std::size_t piece_bytes() const {
    return round_up(size_of(dtype) * static_cast<std::size_t>(elements), std::size_t{64});
  }
};

// Divides the instances along `axes` into pieces, in order. If `rows` is positive, pieces are ranges of rows, counted
// through the instances with `rows` rows each.
struct Cut {
  AxisSet axes;
  std::int64_t rows = 0;  // 0: pieces are whole instances
  std::vector<Block> pieces;
  std::int64_t largest() const;
};

// Work on arrays of `elements` elements, cut into `chunks` chunks. Each chunk passes through all instructions. There is
// one array for each instance along `axes`.
struct Chunked {
  std::int64_t elements = 0, chunks = 1;
  AxisSet axes;
  std::vector<Instruction> instructions;  // Kernel, Copy, ReduceCombine
};

// Instructions that run for each piece of a cut.
struct PieceList {
  int cut = 0;
  std::vector<Instruction> instructions;
};

struct Stage {
  // Every worker first runs `once` by itself. The other lists form tasks, which any worker may run, in any order.
  std::vector<Instruction> once;
  std::vector<Chunked> chunked;    // tasks: chunks of arrays
  std::vector<Instruction> tasks;  // tasks: parts of products, and preparations
  std::vector<PieceList> pieces;   // tasks: pieces of cuts
  bool has_tasks() const { return !chunked.empty() || !tasks.empty() || !pieces.empty(); }
};

// A range of stages that runs several times: the body of a loop in which devices communicate.
struct StageLoop {
  const Equation* equation = nullptr;
  std::size_t first = 0, end = 0;  // the first stage, and the stage behind the last one
  std::int64_t iterations() const { return equation->op.loop().iterations; }
};

// Calls f(stage, iteration) for the stages from `first` to `end` in the order in which they run. `iteration` is that of
// the innermost loop. `loops` are those in the range; inner ones follow the one that contains them.
template <class F>
void for_each_stage(std::span<const StageLoop> loops, std::size_t first, std::size_t end, std::int64_t iteration,
                    F&& f) {
  while (first < end) {
    if (loops.empty() || loops.front().first > first) {
      f(first++, iteration);
      continue;
    }
    const StageLoop& loop = loops.front();
    std::size_t inside = 1;
    while (inside < loops.size() && loops[inside].first < loop.end) ++inside;
    for (std::int64_t k = 0; k < loop.iterations(); ++k) {
      for_each_stage(loops.subspan(1, inside - 1), loop.first, loop.end, k, f);
    }
    first = loop.end;
    loops = loops.subspan(inside);
  }
}

// Replicated values with at most this many elements are computed by every worker for itself.
inline constexpr std::int64_t small_elements = 4096;
// The largest number of pieces, unless collectives over some axes need more, and of parts of a sum.
inline constexpr std::int64_t most_pieces = 64;
inline constexpr std::int64_t most_parts = 16;
// A result with fewer parts than this is not divided into parts.
inline constexpr std::int64_t least_parts = 8;
// Parts begin at multiples of this many rows, because inner loops of products process rows in groups.
inline constexpr std::int64_t part_alignment = 16;
// The smallest size of a chunk, and the largest number of chunks of an array.
inline constexpr std::int64_t chunk_elements = 8192;
inline constexpr std::int64_t most_chunks = 256;
// Operands smaller than this are not packed: a barrier and the packing would cost more than they save.
inline constexpr std::int64_t prepared_elements = std::int64_t{1} << 16;
// Slices and whole values begin at multiples of this many bytes.
inline constexpr std::size_t alignment = 64;

// The operand that the op's kernel reads in its own layout (KernelRules::prepared_operand), if it is large enough to be
// packed once per step.
std::optional<std::size_t> packable_operand(const Program& program, const Equation& equation);
// Whether a chunk of the only operand's elements determines the same share of each result: the op keeps rows, and
// chunks begin at rows.
bool is_chunked_by_rows(const Program& program, const Equation& equation);
// The value whose elements are cut into chunks where an equation is computed in chunks.
Value elements_of(const Program& program, const Equation& equation);
// The number of pieces for a program: as many as its work justifies, but fewer if products with a large matrix would
// otherwise have too few rows per piece. `work`: floating-point operations plus bytes of a step.
std::int64_t pieces_for(const Program& program, double work);
// Cuts the rows of `instances` instances, each with `rows` rows, into about `target` ranges. A range never crosses the
// boundary of a span of `span` neighbouring instances. All spans are cut alike, and sizes differ by at most one row.
std::vector<Block> cut_rows(std::int64_t instances, std::int64_t rows, std::int64_t span, std::int64_t target);
// Cuts instances into about `target` blocks of neighbours. A block never crosses the boundary of a run of `run`
// instances.
std::vector<Block> cut_instances(std::int64_t instances, std::int64_t run, std::int64_t target);
// The number of parts of a sum whose result has `rows` rows.
std::int64_t parts_of(std::int64_t rows);
// The first row of part `part`, when `rows` rows of a result are cut into `parts` parts.
std::int64_t part_begin(std::int64_t rows, std::int64_t parts, std::int64_t part);
// The first element of chunk `chunk`, a multiple of 64. All chunks but the last have the same length.
std::int64_t chunk_begin(const Chunked& chunked, std::int64_t chunk);
std::int64_t chunks_of(std::int64_t elements);

struct PlanOptions {
  // Whether each logical device keeps its own copy of every value, even of replicated ones, for the whole run.
  // verify_replicas compares these copies. Results do not depend on this option.
  bool private_copies = false;
  // The maximum number of pieces; 0: as many as the program's work justifies. Results depend on this number.
  std::int64_t pieces = 0;
};

// The bytes of one copy of each pool: per worker if each has its own, per slot for the batch, per set for accumulators.
// Sums saturate at `most_bytes`. MemorySizes (memory.h) has the totals of a module.
struct PoolSizes {
  std::size_t constants = 0, worker = 0, shared = 0, devices = 0, batch = 0, arena = 0, accumulators = 0;
};

struct Plan {
  std::shared_ptr<const Program> program;
  PlanOptions options;
  // Equations that lowering has added: psums that complete sums over rows.
  std::shared_ptr<const std::deque<Equation>> sums;
  std::vector<Cut> cuts;
  std::vector<Buffer> buffers;
  std::vector<Accumulator> accumulators;
  std::vector<Stage> stages;
  std::vector<StageLoop> loops;  // inner ones follow the one that contains them
  // Buffers to fill on loading, and the equations that compute them.
  std::vector<std::pair<int, const Equation*>> constants;
  std::vector<std::pair<int, const Equation*>> coordinates;  // device buffers that hold axis_index
  std::vector<int> inputs, outputs;                          // buffers, in the program's order
  PoolSizes persistent, transient;                           // see Buffer::persistent
  bool boundary_barrier = false;                             // whether workers must meet at the end of a step
  double work = 0;                                           // floating-point operations plus bytes of a step

  // How many barriers each worker passes per step while several steps run without returning to the host.
  std::int64_t barriers_per_step() const { return runs_of_stages() - 1 + (boundary_barrier ? 1 : 0); }
  // How many stages run in a step, where each iteration of a loop counts.
  std::int64_t runs_of_stages() const;
  // How often a stage runs in a step.
  std::int64_t runs_of_stage(std::size_t stage) const;
  // Whether a step is so short that a barrier costs more than a second worker saves.
  bool is_tiny() const;
  // The largest number of pieces of any cut.
  std::int64_t pieces() const;
};

// Removes stages that have no work.
void erase_empty_stages(Plan& plan);

// Allocates a buffer at the end of its pool. The slices of its instances are contiguous.
void give_place(Buffer& buffer, const Mesh& mesh, PoolSizes& sizes);

// Inputs that several plans share: their buffers by name, and the persistent bytes that they need in each pool.
struct SharedInputs {
  std::map<std::string, Buffer, std::less<>> buffers;
  PoolSizes sizes;
};

// Adds a buffer for each input of the program that `inputs` does not have yet, except batch inputs.
void add_inputs(const Program& program, const PlanOptions& options, SharedInputs& inputs);

// `inputs` must have buffers for all inputs of the program but batch inputs. The plan's own persistent memory follows
// them.
Plan make_plan(std::shared_ptr<const Program> program, const PlanOptions& options, const SharedInputs& inputs);
Plan make_plan(std::shared_ptr<const Program> program, const PlanOptions& options = {});

// The plan as text: stages, instructions, pools and offsets. It does not depend on workers, libraries or the machine.
std::string to_text(const Plan& plan);

}  // namespace pmaptrain::cpu
