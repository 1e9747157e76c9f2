// Requests for kernels: the shapes of an instruction on a piece, a chunk or a part.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/ops/all.h"
#include "core/runtime/cpu/plan.h"

namespace pmaptrain::cpu {

// How kernels and preparations are created.
struct Kernels {
  KernelChoice choice = KernelChoice::best;
  // For tests: used in place of make_cpu_kernel. Called on the thread of the worker that will run the kernel.
  std::function<std::unique_ptr<CpuKernel>(const Op& op, const CpuRequest& request)> make = {};
};

// The part of an instruction's work that a command does. `once`: all of it. `chunk`: a range of elements of one
// instance. `part`: a range of rows of a result. `piece`: a range of rows, or of instances.
struct Extent {
  enum class Kind : std::uint8_t { once, chunk, part, piece } kind = Kind::once;
  std::int64_t first = 0, count = 1;
  AxisSet axes;               // for a chunk or a piece: axes over which there are instances
  std::int64_t instance = 0;  // the instance of a chunk, or the first of a piece
  std::size_t piece = 0;      // index of the piece
  std::int64_t rows = 0;      // for a piece that is a range of rows: rows per instance; else 0
  std::int64_t whole = 0;     // elements of the array that is cut into chunks
  std::int64_t instances() const { return kind == Kind::piece && rows == 0 ? count : 1; }
};

// A kernel request that owns the types it refers to.
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

// The index of a buffer's slice for instance `instance` of an extent.
std::int64_t slice_number(const Plan& plan, const Buffer& buffer, const Extent& extent, std::int64_t instance);
// Whether each instance of a piece has its own slice; these slices are then contiguous. Otherwise all share one slice.
bool is_stacked(const Plan& plan, const Buffer& buffer, const Extent& extent);
Extent extent_of(const Cut& cut, const Block& piece);

// The extents of the tasks of a stage: the chunks of each instance; the parts of a product, or one extent for another
// task; the non-empty pieces.
std::vector<Extent> extents_of(const Plan& plan, const Chunked& chunked);
std::vector<Extent> extents_of(const Plan& plan, const Instruction& task);
std::vector<Extent> extents_of(const Plan& plan, const PieceList& list);
Request request_of(const Plan& plan, const Kernel& kernel, const Extent& extent);

// The kernel that reads a packed buffer, and its cut. The map has one entry for each packed buffer.
struct Reading {
  const Kernel* kernel = nullptr;
  int cut = 0;
};
std::map<int, Reading> readers_of_packed(const Plan& plan);
Extent first_piece_of(const Plan& plan, const Reading& reader);

// Asks the libraries which operands they prefer packed. The PackOperand instructions of other operands are removed.
// Packed operands are allocated in the packed pool, whose size is returned.
std::size_t settle_packing(Plan& plan, const Kernels& kernels);

}  // namespace pmaptrain::cpu
