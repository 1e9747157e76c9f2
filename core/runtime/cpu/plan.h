// The plan of a program on CPU threads: what runs where, in which order, in which memory. Fixed before the first step,
// from the program alone and never from the number of workers, so that a config gives the same bits on any number.
//
// A value that varies over some axes has one instance for each position along these. Work that keeps rows, or sums
// them, is cut into ranges of the rows of all instances, whatever the number of devices; other work on values that vary
// into blocks of whole instances. Work on values that are equal everywhere runs in every worker when it is small, and
// otherwise once, in chunks of elements. Stages are separated by a barrier among workers; a collective ends one.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/saturate.h"
#include "core/graph/program.h"
#include "core/mesh/mesh.h"
#include "core/runtime/cpu/instruction.h"

namespace pmaptrain::cpu {

// Where a buffer lies.
enum class Pool : std::uint8_t {
  constant,  // one copy, filled when the plan is loaded
  worker,    // one copy per worker, which each computes for itself: small and equal on every device
  shared,    // one copy, computed in chunks: larger and equal on every device
  device,    // one slice per instance, kept through the step
  batch,     // batch inputs: a slice per instance
  arena,     // the rows, or the slices, of the piece at hand, in the worker's temporary memory
  piece,     // one for the piece at hand, in the worker's temporary memory
  packed,    // one copy, of a size and at a place that are known when kernels are made; offsets count operands
};
std::string_view to_string(Pool pool);

enum class Layout : std::uint8_t {
  row_major,
  packed,  // as the kernel that reads it takes it (PackOperand); its size is known when kernels are made
};

struct Buffer {
  DType dtype = DType::f32;
  Layout layout = Layout::row_major;
  AxisSet axes;             // over which there are distinct instances
  std::int64_t pieces = 0;  // or so many pieces that have a slice each: of sums over rows that cross a barrier
  Pool pool = Pool::arena;
  // Whether it outlives a run of the entry: inputs and outputs. All other memory serves every entry of a module.
  bool persistent = false;
  std::int64_t elements = 0;  // of one slice
  std::size_t offset = 0;     // in its pool; of the first slice
  std::size_t slice_bytes() const { return size_of(dtype) * static_cast<std::size_t>(elements); }
};

// One for each piece of a cut.
struct Accumulator {
  DType dtype = DType::f32;  // its own: a sum may be kept in a wider type than its addends
  std::int64_t elements = 0;
  int cut = 0;
  std::size_t offset = 0;  // of the first piece's
  std::size_t piece_bytes() const {
    return round_up(size_of(dtype) * static_cast<std::size_t>(elements), std::size_t{64});
  }
};

// Pieces of the instances along `axes`, in order. By rows: ranges of the `rows` rows of each, one after another.
struct Cut {
  AxisSet axes;
  std::int64_t rows = 0;  // 0: pieces are whole instances
  std::vector<Block> pieces;
  std::int64_t largest() const;
};

// Work on arrays of `elements` elements, cut into `chunks`: each chunk passes through all instructions. There is one
// such array for each instance along `axes`.
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
  std::vector<Instruction> once;   // first, by every worker for itself
  std::vector<Chunked> chunked;    // then, in any order and by any worker: chunks,
  std::vector<Instruction> tasks;  // parts and preparations,
  std::vector<PieceList> pieces;   // and these
  bool has_tasks() const { return !chunked.empty() || !tasks.empty() || !pieces.empty(); }
};

// Replicated values of at most this many elements are computed by every worker for itself.
inline constexpr std::int64_t small_elements = 4096;
// Work is cut into at most so many pieces, unless collectives over some axes need more; a sum in parts has so many.
inline constexpr std::int64_t most_pieces = 64;
inline constexpr std::int64_t most_parts = 16;
// A sum of fewer rows is not worth parts.
inline constexpr std::int64_t least_parts = 8;
// Parts begin at multiples of so many rows: a product's inner loops take them in groups.
inline constexpr std::int64_t part_alignment = 16;
// A chunk has at least so many elements, and an array at most `most_chunks` of them.
inline constexpr std::int64_t chunk_elements = 8192;
inline constexpr std::int64_t most_chunks = 16;
// An operand is prepared where it has at least so many elements: a barrier and the packing cost more otherwise.
inline constexpr std::int64_t prepared_elements = std::int64_t{1} << 16;
// Slices and whole values begin at multiples of this many bytes.
inline constexpr std::size_t alignment = 64;

// The operand that the op's kernel takes in a layout of its own (KernelRules::prepared_operand), where that is
// large enough to be packed once per step.
std::optional<std::size_t> packable_operand(const Program& program, const Equation& equation);
// Into how many pieces a program's work is cut: as many as it pays for, and fewer where the rows of a product with a
// large matrix would be too few for each. `work`: floating operations and bytes of a step.
std::int64_t pieces_for(const Program& program, double work);
// Ranges of the rows of `instances` instances of `rows` rows each, about `target` in all. No piece has rows of two
// spans, of `span` neighbouring instances each. All spans are cut alike, and pieces differ by a row at most.
std::vector<Block> cut_rows(std::int64_t instances, std::int64_t rows, std::int64_t span, std::int64_t target);
// Blocks of neighbouring instances, about `target` in all, none with instances of two runs of `run`.
std::vector<Block> cut_instances(std::int64_t instances, std::int64_t run, std::int64_t target);
// Into how many parts a sum of so many rows is cut.
std::int64_t parts_of(std::int64_t rows);
// The row of the result with which part `part` of `parts` begins, of `rows`: by these numbers alone.
std::int64_t part_begin(std::int64_t rows, std::int64_t parts, std::int64_t part);
// The element with which chunk `chunk` begins, a multiple of 64: all chunks but the last are equally long.
std::int64_t chunk_begin(const Chunked& chunked, std::int64_t chunk);
std::int64_t chunks_of(std::int64_t elements);

struct PlanOptions {
  // Every logical device keeps its own copy of every value, also of replicated ones, for the whole run: what
  // verify_replicas compares. Same bits.
  bool private_copies = false;
  // Pieces to cut the devices into, at most; 0: as many as the program's work pays for. The bits depend on it.
  std::int64_t pieces = 0;
};

// Bytes of one copy of each pool: of a worker where each has its own, of a slot for the batch, of one set for the
// accumulators. Sums end at `most_bytes`. MemorySizes (memory.h) has what a module takes in all.
struct PoolSizes {
  std::size_t constants = 0, worker = 0, shared = 0, devices = 0, batch = 0, arena = 0, accumulators = 0;
};

struct Plan {
  std::shared_ptr<const Program> program;  // without loops in which devices communicate: those are unrolled
  PlanOptions options;
  std::shared_ptr<const std::deque<Equation>> sums;  // that were made: of sums over rows which other work reads
  std::vector<Cut> cuts;
  std::vector<Buffer> buffers;
  std::vector<Accumulator> accumulators;
  std::vector<Stage> stages;
  std::vector<std::pair<int, const Equation*>> constants;    // buffers to fill when loaded, by this op
  std::vector<std::pair<int, const Equation*>> coordinates;  // device buffers that hold axis_index
  std::vector<int> inputs, outputs;                          // buffers, in the program's order
  PoolSizes persistent, transient;                           // see Buffer::persistent
  bool boundary_barrier = false;                             // whether workers must meet at the end of a step
  double work = 0;                                           // floating operations and bytes of a step

  // How many barriers each worker passes per step while several steps run back to back without returning to the host.
  std::int64_t barriers_per_step() const {
    return static_cast<std::int64_t>(stages.size()) - 1 + (boundary_barrier ? 1 : 0);
  }
  // Whether a step is so short that a barrier costs more than a second worker saves.
  bool is_tiny() const;
  // The most pieces of any cut.
  std::int64_t pieces() const;
};

// Gives a buffer a place of its own at the end of its pool. The slices of its instances follow one another.
void give_place(Buffer& buffer, const Mesh& mesh, PoolSizes& sizes);

// Inputs that several plans share: their buffers by name, and the persistent bytes of each pool that they take.
struct SharedInputs {
  std::map<std::string, Buffer, std::less<>> buffers;
  PoolSizes sizes;
};

// Adds to `inputs` a buffer for each input of the program, except batch inputs, that has none there yet.
void add_inputs(const Program& program, const PlanOptions& options, SharedInputs& inputs);

// `inputs` has the buffers of the program's inputs. Persistent memory of the plan's own follows theirs.
Plan make_plan(std::shared_ptr<const Program> program, const PlanOptions& options, const SharedInputs& inputs);
Plan make_plan(std::shared_ptr<const Program> program, const PlanOptions& options = {});

// The plan as text: stages, instructions, pools and offsets. Names no worker, no library and no instruction set.
std::string to_text(const Plan& plan);

}  // namespace pmaptrain::cpu
