// Requests for kernels, with the shapes that an instruction has on a piece, a chunk or a part.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/ops/all.h"
#include "core/runtime/cpu/plan.h"

namespace pmaptrain::cpu {

// How kernels and preparations are created.
struct KernelFactory {
  KernelChoice choice = KernelChoice::best;
  // For tests: used in place of make_cpu_kernel. Called on the thread of the worker that will run the kernel.
  std::function<std::unique_ptr<CpuKernel>(const Op& op, const CpuRequest& request)> make = {};
};

// The share of an instruction's work that one command does.
struct Extent {
  enum class Kind : std::uint8_t {
    whole,  // all of it
    chunk,  // the elements first ... first + count of one instance of an array
    part,   // the rows, or columns, first ... first + count of an instance of the result of a ProductInParts
    piece,  // of a cut by rows: the rows first ... first + count; else the instances first ... first + count
  } kind = Kind::whole;
  std::int64_t first = 0, count = 1;
  AxisSet axes;               // there is an instance for each position along these axes
  std::int64_t instance = 0;  // the instance of a chunk or a part, or the first instance of a piece
  // The other members are for chunks and pieces only.
  std::size_t piece = 0;               // the index of the piece among those of this process
  std::int64_t rows_per_instance = 0;  // see Cut
  std::int64_t chunked_elements = 0;   // the elements of the array that is cut into chunks
  // The number of instances that the command computes one by one; 1 if it computes rows, elements or all work at once.
  std::int64_t instances() const { return kind == Kind::piece && rows_per_instance == 0 ? count : 1; }
};

// A CpuRequest, and the types that it refers to.
struct KernelRequest {
  std::vector<Type> operands, results;
  CpuRequest request;

  const CpuRequest& get() {
    request.operands = operands;
    request.results = results;
    return request;
  }
};

inline const Buffer& buffer_of(const Plan& plan, int index) { return plan.buffers[static_cast<std::size_t>(index)]; }

// The index of the slice that instance `instance` along extent.axes reads of a buffer; -1 if the buffer has a slice for
// each of several devices with this instance, and none of them is this process's.
std::int64_t slice_index(const Plan& plan, const Buffer& buffer, const Extent& extent, std::int64_t instance);
// Whether each instance of a piece has its own slice of the buffer, one after another. Else all share one slice.
bool is_stacked(const Plan& plan, const Buffer& buffer, const Extent& extent);
// The extent of a piece. It does not set Extent::piece, because an IndexRange does not know its index in the cut.
Extent extent_of(const Cut& cut, const IndexRange& piece);

// The axes over which the operands of a ProductInParts vary, and those over which its result does.
AxisSet axes_of_rows(const Plan& plan, const ProductInParts& parts);
AxisSet axes_of_sums(const Plan& plan, const ProductInParts& parts);
// The instances along the axes of a ProductInParts' operands whose rows instance `result` sums, as runs of neighbours
// that lie one after another in each operand. No run has instances of two blocks.
std::vector<IndexRange> runs_of(const Plan& plan, const ProductInParts& parts, std::int64_t result);
// The number of runs, from the first one, that belong to the same block.
std::size_t runs_of_block(const Plan& plan, const ProductInParts& parts, std::span<const IndexRange> runs);
// The number of sums that a task of a ProductInParts keeps in the arena beside its result.
std::size_t sums_in_arena(const Plan& plan, const ProductInParts& parts);
// Whether the equation is a sum by index, of which any rows can be computed from all rows of the operands.
bool sums_by_index(const Program& program, const Equation& equation);
// The numbers of rows of the pieces of these instances along `axes`, in order.
std::vector<std::int64_t> rows_of_pieces(const Plan& plan, AxisSet axes, const IndexRange& instances);
// The type of that many rows or columns of the result.
Type type_of_part(const Plan& plan, const ProductInParts& parts, std::int64_t rows);

// One extent for each task of a list of a stage, or of an instruction in Stage::tasks. Empty pieces have no task.
std::vector<Extent> extents_of(const Plan& plan, const ChunkList& chunked);
std::vector<Extent> extents_of(const Plan& plan, const Instruction& task);
std::vector<Extent> extents_of(const Plan& plan, const PieceList& list);
KernelRequest request_of(const Plan& plan, const Kernel& kernel, const Extent& extent);

// A kernel that reads a packed buffer, and the cut on whose pieces it runs.
struct PackedReader {
  const Kernel* kernel = nullptr;
  int cut = 0;
};
// The readers of all packed buffers, by buffer.
std::map<int, PackedReader> readers_of_packed(const Plan& plan);
Extent first_piece_of(const Plan& plan, const PackedReader& reader);

// Asks the libraries which operands they prefer packed. Removes the PackOperand instructions of other operands, and
// places the results of the remaining ones in the packed pool. Returns the bytes of this pool.
std::size_t settle_packing(Plan& plan, const KernelFactory& kernels);

}  // namespace pmaptrain::cpu
