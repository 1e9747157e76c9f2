// What kernels are asked for: the shapes of an instruction on a piece, a chunk or a part.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/ops/all.h"
#include "core/runtime/cpu/plan.h"

namespace pmaptrain::cpu {

// What makes kernels and preparations.
struct Kernels {
  KernelChoice choice = KernelChoice::best;
  // In place of make_cpu_kernel, for tests; called on the thread of the worker that will run the kernel.
  std::function<std::unique_ptr<CpuKernel>(const Op& op, const CpuRequest& request)> make = {};
};

// The part of an instruction's work that a bound command does. `once`: all of it. `chunk`: a range of elements of one
// instance. `part`: a range of rows of a result. `piece`: a range of rows or of instances.
struct Extent {
  enum class Kind : std::uint8_t { once, chunk, part, piece } kind = Kind::once;
  std::int64_t first = 0, count = 1;
  AxisSet axes;               // of a chunk, or a piece: over which there are instances
  std::int64_t instance = 0;  // of a chunk, or the first of a piece
  std::size_t piece = 0;      // its number
  std::int64_t rows = 0;      // of an instance, where a piece is a range of rows
  std::int64_t whole = 0;     // elements of the array that is cut into chunks
  std::int64_t instances() const { return kind == Kind::piece && rows == 0 ? count : 1; }
};

// A request and the types that it refers to.
struct Request {
  std::vector<Type> operands, results;
  CpuRequest request;

  const CpuRequest& get() {
    request.operands = operands;
    request.results = results;
    return request;
  }
};

inline const Buffer& buffer_of(const Plan& plan, int index) { return plan.buffers[static_cast<std::size_t>(index)]; }

// Where the slice of instance `instance` of an extent's is among those of a buffer.
std::int64_t slice_number(const Plan& plan, const Buffer& buffer, const Extent& extent, std::int64_t instance);
// Whether the instances of a piece have slices of their own, which then follow one another, or one for all.
bool is_stacked(const Plan& plan, const Buffer& buffer, const Extent& extent);
Extent extent_of(const Cut& cut, const Block& piece);

// The extents of a stage's tasks: chunks of each instance; the parts of a product's rows, or one; the pieces that are
// not empty.
std::vector<Extent> extents_of(const Plan& plan, const Chunked& chunked);
std::vector<Extent> extents_of(const Plan& plan, const Instruction& task);
std::vector<Extent> extents_of(const Plan& plan, const PieceList& list);
Request request_of(const Plan& plan, const Kernel& kernel, const Extent& extent);

// What reads a packed buffer, of which there is one kernel, and on which cut; by buffer.
struct Reading {
  const Kernel* kernel = nullptr;
  int cut = 0;
};
std::map<int, Reading> readers_of_packed(const Plan& plan);
Extent first_piece_of(const Plan& plan, const Reading& reader);

// Asks the libraries which operands they would rather have packed. Those that they take as they are lose their
// PackOperand instruction; the others get their place in the packed pool, whose bytes are returned.
std::size_t settle_packing(Plan& plan, const Kernels& kernels);

}  // namespace pmaptrain::cpu
