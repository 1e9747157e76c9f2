// The plan of a program for CPU threads: the stages with their instructions, and the memory of each value. It is made
// before the first step from the program and PlanOptions, never from the number of workers, so results do not depend on
// that number.
//
// A value that varies over some axes has one instance for each position along these axes. Equations on rows (README.md)
// run on ranges of the rows of all instances, whatever the number of devices. Other equations on varying values run on
// blocks of whole instances. Equations on replicated values are repeated by every worker if the value is small, and
// otherwise computed once, in chunks of elements. A barrier separates two stages.
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

#include "core/analysis/chunks.h"
#include "core/base/saturate.h"
#include "core/graph/program.h"
#include "core/mesh/mesh.h"
#include "core/mesh/share.h"
#include "core/runtime/cpu/instruction.h"

namespace pmaptrain::cpu {

// The memory pool of a buffer.
enum class Pool : std::uint8_t {
  constant,  // constants: one copy, filled when the plan is loaded
  worker,    // small replicated values: each worker computes a copy for itself
  shared,    // values that are computed in chunks: one copy that all workers share
  device,    // varying values that live longer than a piece is computed: one slice per instance
  batch,     // batch inputs: one slice per instance
  arena,     // varying temporaries, in the worker's arena: the rows, or the slices, of the current piece
  piece,     // temporaries in the worker's arena that have no rows or slices: one array for the current piece
  packed,    // results of PackOperand: one copy; Buffer::offset counts them until settle_packing() places them
};
std::string_view to_string(Pool pool);

enum class Layout : std::uint8_t {
  row_major,
  packed,  // the layout that the library prefers for this operand (see PackOperand)
};

struct Buffer {
  DType dtype = DType::f32;
  Layout layout = Layout::row_major;
  // There is one slice for each instance along these axes that the process has, unless one of the next two is positive.
  AxisSet axes;
  // If positive, the buffer has one slice for each of this many pieces of a cut by rows. This holds for a sum over the
  // rows of a piece that another stage reads.
  std::int64_t pieces = 0;
  // If positive, the buffer has so many slices of contributions of processes (core/mesh/share.h).
  std::int64_t contributions = 0;
  Pool pool = Pool::arena;
  // Whether the value outlives a run of the entry, as inputs and outputs do. All entries of a module share the memory
  // of the other buffers.
  bool persistent = false;
  bool of_all_members = false;  // whether members share the memory of an input
  std::int64_t elements = 0;    // per slice
  std::size_t offset = 0;       // byte offset of the first slice in the pool
  // If this buffer is one array inside a bucket: the array's first element in the bucket, and the number of elements of
  // the bucket. bucket_elements is 0 for a buffer that is not inside a bucket.
  std::int64_t bucket_begin = 0, bucket_elements = 0;
  // The distance between contributions. An array inside a bucket is as far from the next one as the bucket is.
  std::size_t stride() const {
    return size_of(dtype) * static_cast<std::size_t>(bucket_elements > 0 ? bucket_elements : elements);
  }
  std::size_t slice_bytes() const { return size_of(dtype) * static_cast<std::size_t>(elements); }
};

// The memory in which each piece of a cut leaves its addend of one reduction: one array for each piece. Small arrays of
// a piece lie next to each other.
struct Accumulator {
  DType dtype = DType::f32;  // may be wider than the type of the addends
  std::int64_t elements = 0;
  int cut = 0;
  std::size_t offset = 0;        // byte offset of the first piece's array among the accumulators
  std::size_t piece_stride = 0;  // bytes from the array of a piece to that of the next one
  std::size_t bytes() const { return size_of(dtype) * static_cast<std::size_t>(elements); }
};

// Divides the instances along `axes` into pieces, in order. In a cut into whole instances, each piece is a block of
// instances. In a cut by rows, each piece is a block of rows: the rows of all instances are numbered one after another,
// `rows_per_instance` for each instance.
struct Cut {
  AxisSet axes;
  std::int64_t rows_per_instance = 0;  // 0: a cut into whole instances
  std::vector<IndexRange> pieces;      // of all processes
  IndexRange own;                      // the indices of the pieces that this process carries
  std::int64_t largest() const;        // rows or instances of the largest piece
};

// Instructions on arrays of `elements` elements that are cut into `chunks` chunks. For each chunk one task runs all
// instructions. If `axes` is not empty, there is an array for each position along these axes, and each is cut alike.
struct ChunkList {
  std::int64_t elements = 0, chunks = 1;
  AxisSet axes;
  std::vector<Instruction> instructions;  // Kernel, Copy, ReduceCombine
};

// Instructions that one task runs for each piece of a cut.
struct PieceList {
  int cut = 0;
  std::vector<Instruction> instructions;
};

// What the workers run between two barriers.
struct Stage {
  std::vector<Instruction> every_worker;  // each worker runs these by itself, before it takes tasks
  // The other lists form tasks. Each task is run by one worker, and the tasks of a stage may run in any order.
  std::vector<ChunkList> chunk_lists;  // one task for each chunk
  std::vector<Instruction> tasks;      // one task for each part of a ProductInParts, and for each PackOperand
  std::vector<PieceList> piece_lists;  // one task for each piece
  bool has_tasks() const { return !chunk_lists.empty() || !tasks.empty() || !piece_lists.empty(); }
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
// Equations that are not cut compute a replicated array of more elements in one task, for all workers.
inline constexpr std::int64_t least_shared_elements = 1 << 16;
// The largest number of pieces, unless collectives over some axes need more.
inline constexpr std::int64_t most_pieces = 64;
// The largest number of parts of a ProductInParts, and the number from which several that are computed at the same time
// have enough together, for 64 workers: larger parts take less time for the same work.
inline constexpr std::int64_t most_parts = 16, enough_parts = 160;
// A product whose result has too few rows for this many parts is not computed in parts.
inline constexpr std::int64_t least_parts = 8;
// Parts begin at multiples of this many rows, because the inner loops of matrix products process rows in groups.
inline constexpr std::int64_t part_alignment = 16;
// A part has at least so many columns: each reads the other operand anew, and the gradient of a kernel also transposes
// the images anew for each range of output channels. It has at least so many rows, unless there would be fewer than
// least_parts.
inline constexpr std::int64_t part_columns = 64, part_rows = 48;
// Operands with fewer elements are not packed: a barrier and the packing would cost more than they save.
inline constexpr std::int64_t least_packed_elements = std::int64_t{1} << 16;
// Buffers begin at multiples of this many bytes in their pool.
inline constexpr std::size_t alignment = 64;

// The index of the operand that the op's kernel can take in a packed layout (KernelRules::prepared_operand). None if
// there is no such operand, or if it has fewer than least_packed_elements elements.
std::optional<std::size_t> packable_operand(const Program& program, const Equation& equation);
// Whether an equation that is not elementwise can be computed in chunks of whole rows. This holds if it has one
// operand, computes row i of each result from row i of the operand alone, and every chunk of the operand begins at a
// row.
bool is_chunked_by_rows(const Program& program, const Equation& equation);
// For an equation that is computed in chunks: the value whose elements the chunks divide. That is the operand if
// is_chunked_by_rows(), else the result.
Value chunked_value(const Program& program, const Equation& equation);
// The number of pieces into which the program's rows should be cut: as many as its work justifies, but fewer if matrix
// products with a large matrix would otherwise have too few rows per piece. `work` is the sum of the floating-point
// operations and the bytes of a step.
std::int64_t pieces_for(const Program& program, double work);
// Cuts the rows of instances, each with `rows` rows, into about `target` pieces. `runs` are the instances as runs of
// neighbours; no piece has rows of two runs. Runs of equal length are cut alike; sizes differ by at most one row.
std::vector<IndexRange> cut_rows(std::span<const IndexRange> runs, std::int64_t rows, std::int64_t target);
// Cuts instances into about `target` pieces of neighbouring instances. No piece has instances of two of the `runs`.
std::vector<IndexRange> cut_instances(std::span<const IndexRange> runs, std::int64_t target);
// Which ranges of the result of an equation, a sum over rows, can be computed separately; and how many rows or columns
// there are, 0 if `none`.
RowRule::Parts parts_of(const Program& program, const Equation& equation);
std::int64_t size_in_parts(const Program& program, const Equation& equation);
// The number of parts of a ProductInParts whose result has so many rows, or so many columns; `products` of them are
// computed at the same time.
std::int64_t part_count(std::int64_t size, bool of_columns = false, std::int64_t products = 1);
// The first row of part `part` if the `rows` rows of a result are cut into `parts` parts.
std::int64_t part_begin(std::int64_t rows, std::int64_t parts, std::int64_t part);
struct PlanOptions {
  // Whether each logical device has its own copy of every value, even of replicated ones (see Source).
  bool private_copies = false;
  // The approximate number of pieces of a cut; 0: as many as the program's work justifies. Results depend on this
  // number.
  std::int64_t pieces = 0;
  // The number of blocks in which sums over devices are added (core/mesh/blocks.h). No piece has rows of two blocks.
  std::int64_t blocks = 1;
  Placement placement = {};  // a process has memory for, and runs, only its share of the devices
  double work = 0;           // see Entry
};

// The bytes that one copy of each pool takes. A module has a copy of `worker` and `arena` for each worker, of `batch`
// for each slot, and of `accumulators` for each set (Base::accumulators). Sums saturate at `most_bytes`.
// MemorySizes (memory.h) has the totals of a module.
struct PoolSizes {
  std::size_t constants = 0, worker = 0, shared = 0, devices = 0, batch = 0, arena = 0, accumulators = 0;
  std::size_t base = 0;  // of inputs that members share
};

struct Plan {
  std::shared_ptr<const Program> program;
  PlanOptions options;
  // Equations that lowering has added and that instructions point to: psums that complete sums over rows, and
  // constants.
  std::shared_ptr<const std::deque<Equation>> added_equations;
  std::vector<Cut> cuts;
  std::vector<Buffer> buffers;
  std::vector<Accumulator> accumulators;
  std::vector<Stage> stages;
  std::vector<StageLoop> loops;  // inner ones follow the one that contains them
  // Buffers that are filled when the plan is loaded, and the equations that compute their values.
  std::vector<std::pair<int, const Equation*>> constants;
  std::vector<std::pair<int, const Equation*>> coordinates;  // results of axis_index
  std::vector<int> inputs, outputs;                          // buffers, in the program's order
  PoolSizes persistent, transient;                           // see Buffer::persistent
  // How many pieces a worker runs abreast: each command for all of them, then the next one. So a weight that they read
  // stays in the cache meanwhile. `arena_bytes` is the arena of one piece.
  std::size_t abreast = 1, arena_bytes = 0;
  bool barrier_after_step = false;  // whether the workers meet at a barrier after each step
  double work = 0;                  // floating-point operations plus bytes of a step

  Share share() const { return Share(program->mesh, options.blocks, options.placement); }
  // How many barriers each worker passes per step when one call of submit() runs several steps.
  std::int64_t barriers_per_step() const { return stage_runs_per_step() - 1 + (barrier_after_step ? 1 : 0); }
  // How many stages run in a step, where each iteration of a loop counts.
  std::int64_t stage_runs_per_step() const;
  // How often a stage runs in a step.
  std::int64_t runs_per_step(std::size_t stage) const;
  // Whether a step is so short that a barrier costs more than a second worker saves.
  bool is_tiny() const;
  // Whether a step is so short that its tasks take no longer than a few barriers.
  bool is_short() const;
  // The largest number of pieces of any cut.
  std::int64_t max_pieces() const;
};

// Removes stages that have no work. A program without work keeps one.
void erase_empty_stages(Plan& plan);

// The number of slices of a buffer.
std::int64_t slices_of(const Buffer& buffer, const Share& share);

// The bytes of a pool that has an entry there.
std::size_t& size_of_pool(PoolSizes& sizes, Pool pool);

// Sets buffer.offset to the end of its pool in `sizes`, and adds the bytes of all slices of the buffer to the pool.
void allocate_in_pool(Buffer& buffer, const Share& share, PoolSizes& sizes);

// The inputs of a module's plans, except batch inputs: their buffers by name, and the persistent bytes that these take
// in each pool.
struct SharedInputs {
  std::map<std::string, Buffer, std::less<>> buffers;
  PoolSizes sizes;
};

// Adds a buffer for each input of the program, except batch inputs, whose name is not in `inputs` yet.
void add_inputs(const Program& program, const PlanOptions& options, SharedInputs& inputs);

// `inputs` must have buffers for all inputs of the program except batch inputs. The plan places its other persistent
// buffers after inputs.sizes. The second overload makes `inputs` from the program alone.
Plan make_plan(std::shared_ptr<const Program> program, const PlanOptions& options, const SharedInputs& inputs);
Plan make_plan(std::shared_ptr<const Program> program, const PlanOptions& options = {});

// The plan as text: stages, instructions, pools and offsets. It does not depend on workers, libraries or the machine.
std::string to_text(const Plan& plan);

}  // namespace pmaptrain::cpu
