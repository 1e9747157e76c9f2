// The interface of CPU kernels: a kernel is planned once for fixed shapes and then runs many times without allocating.
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

// Requests a kernel for one equation on `devices` neighbouring logical devices. A *stacked* operand has one slice of
// its local type (the type on one device) for each device, one after another; all devices read the same array of any
// other operand. Results are always stacked. So a kernel may process the rows of all devices as one batch if they share
// its other operands.
struct CpuRequest {
  std::span<const Type> operands;  // local types
  std::span<const Type> results;
  std::int64_t devices = 1;
  std::vector<bool> stacked;  // by operand
  // The operand, if any, that is passed in the layout that the op's CpuPreparation for this request has packed it into.
  std::optional<std::size_t> packed = {};
  // For a CpuPreparation: the element type of the operand that it packs, if it also converts that to the type above.
  std::optional<DType> packed_from = {};
  // The operand, if any, that consists of some columns of a wider matrix, and the number of columns of that matrix.
  // Columns are along the last dimension.
  struct Columns {
    std::size_t operand;
    std::int64_t of;
  };
  std::optional<Columns> columns = {};
  // Pairs of an operand and a result that use the same memory.
  std::vector<std::pair<std::size_t, std::size_t>> shared = {};
  const Region* region = nullptr;    // the equation's region, if it has one
  std::span<const Type> types = {};  // if there is a region: the types of all values of the program
};

struct CpuArguments {
  const std::byte* const* operands;
  std::byte* const* results;
  std::byte* scratch;  // scratch_bytes() of 64-byte aligned memory, for exclusive use during the call
};

// A copy to another layout (a reorder) that a kernel makes in each run because its library computes in that layout.
struct LayoutChange {
  std::string of;         // the array: "operand 1", "result 0"
  std::size_t bytes = 0;  // bytes read and written in one run
};

// A kernel is created and run by one worker (a thread of the CPU backend), so it may own mutable objects of a library.
class CpuKernel {
 public:
  virtual ~CpuKernel() = default;
  virtual void run(const CpuArguments& arguments) = 0;
  virtual std::size_t scratch_bytes() const { return 0; }
  // "reference", or the library's name of the implementation that it chose, for example "brg:avx512_core".
  virtual std::string implementation() const = 0;
  virtual std::vector<LayoutChange> layout_changes() const { return {}; }
  // The number of library primitives that a run executes, including changes of layout.
  virtual std::int64_t library_calls() const { return 0; }
};

// Packs an operand that many runs read, such as weights, into the layout that the op's kernel reads. Created and run by
// one worker, like a kernel.
class CpuPreparation {
 public:
  virtual ~CpuPreparation() = default;
  virtual std::size_t bytes() const = 0;  // bytes of the result
  virtual std::size_t scratch_bytes() const { return 0; }
  // A text that identifies the result: equal texts mean equal bytes for the same operand. A matrix and its transpose
  // may have one layout, so the text has that of the operand, too.
  virtual std::string layout() const = 0;
  virtual void run(const std::byte* from, std::byte* to, std::byte* scratch) = 0;
};

// An op declares a constant of this type in place of the function cpu() if its CPU kernel is its reference kernel.
struct UseReference {
  std::string_view because;
};
// An op declares a constant of this type if it has no kernel because backends execute it themselves: collectives, the
// loop, pvary.
struct RuntimeOp {
  std::string_view because;
};

using ReferenceFunction = void (*)(const void* op, const ReferenceCall& call);

// A kernel that calls `function`, which is a reference kernel or has the same signature, for each device in turn.
std::unique_ptr<CpuKernel> make_reference_kernel(std::shared_ptr<const void> op, ReferenceFunction function,
                                                 const CpuRequest& request, std::string name = "reference");

// Makes OpenMP use one thread for work of the calling thread. Every thread must call this before it creates or runs
// kernels, because by default the library would use all cores for each of them.
void use_one_thread_in_libraries();

}  // namespace pmaptrain
