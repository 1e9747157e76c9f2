// What a kernel is on the CPU: planned once for fixed shapes, then run many times without allocating.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/reference.h"

namespace pmaptrain {

// One equation for a run of `devices` neighbouring logical devices. A stacked operand holds one slice of its local
// type for each device, contiguously; one that is not stacked is the same for all. Results are always stacked. So a
// kernel may see rows of several devices as one batch where no other operand differs between them.
struct CpuRequest {
  std::span<const Type> operands;  // local types
  std::span<const Type> results;
  std::int64_t devices = 1;
  std::vector<bool> stacked;  // by operand
  // The operand that comes in the layout of the op's CpuPreparation for this request, if any.
  std::optional<std::size_t> packed = {};
  // Pairs of an operand and a result that are the same memory.
  std::vector<std::pair<std::size_t, std::size_t>> shared = {};
  const Region* region = nullptr;    // of an op that carries one
  std::span<const Type> types = {};  // with a region: of all values of the program
};

struct CpuArguments {
  const std::byte* const* operands;
  std::byte* const* results;
  std::byte* scratch;  // scratch_bytes() of 64-byte aligned memory, of this call alone while it runs
};

// A copy into another layout (a reorder) that a kernel makes in each run, since its library computes in other layouts.
struct LayoutChange {
  std::string of;         // "operand 1", "result 0"
  std::size_t bytes = 0;  // read and written in one run
};

// Belongs to one worker: it is made and run on that worker's thread only, so it may keep mutable library objects.
class CpuKernel {
 public:
  virtual ~CpuKernel() = default;
  virtual void run(const CpuArguments& arguments) = 0;
  virtual std::size_t scratch_bytes() const { return 0; }
  // "reference", or the library's name of the implementation that it chose.
  virtual std::string implementation() const = 0;
  virtual std::vector<LayoutChange> layout_changes() const { return {}; }
  // How many primitives of a library a run executes, changes of layout included.
  virtual std::int64_t library_calls() const { return 0; }
};

// Copies an operand that many runs share into the layout in which the op's kernel takes it: packed weights. Belongs to
// one worker, like a kernel.
class CpuPreparation {
 public:
  virtual ~CpuPreparation() = default;
  virtual std::size_t bytes() const = 0;  // of the result
  virtual std::size_t scratch_bytes() const { return 0; }
  // "BA16a64b": equal where two results have the same layout.
  virtual std::string layout() const = 0;
  virtual void run(const std::byte* from, std::byte* to, std::byte* scratch) = 0;
};

// The explicit entry, in place of cpu(), of an op whose CPU kernel is its reference.
struct UseReference {
  std::string_view because;
};
// The explicit entry of an op that the runtime itself carries out (collectives, the loop, pvary).
struct RuntimeOp {
  std::string_view because;
};

using ReferenceFunction = void (*)(const void* op, const ReferenceCall& call);

// A kernel that calls `function`, a reference or another with the same arguments, for each device in turn.
std::unique_ptr<CpuKernel> make_reference_kernel(std::shared_ptr<const void> op, ReferenceFunction function,
                                                 const CpuRequest& request, std::string name = "reference");

// Limits the OpenMP team of the calling thread to one member. Every thread that makes or runs kernels calls it first,
// since a new thread starts with a team of all cores.
void use_one_thread_in_libraries();

}  // namespace pmaptrain
