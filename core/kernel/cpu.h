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

// Requests a kernel for one equation on a range of `devices` neighbouring logical devices. A stacked operand holds one
// slice of its local type for each device, contiguously; any other operand is shared by all devices. Results are always
// stacked. So a kernel may process rows of several devices as one batch if all other operands are shared.
struct CpuRequest {
  std::span<const Type> operands;  // local types
  std::span<const Type> results;
  std::int64_t devices = 1;
  std::vector<bool> stacked;  // by operand
  // The operand, if any, that is passed in the layout of the op's CpuPreparation for this request.
  std::optional<std::size_t> packed = {};
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
  std::string of;         // "operand 1", "result 0"
  std::size_t bytes = 0;  // bytes read and written in one run
};

// A kernel belongs to one worker. It is created and run on that worker's thread only, so it may own mutable library
// objects.
class CpuKernel {
 public:
  virtual ~CpuKernel() = default;
  virtual void run(const CpuArguments& arguments) = 0;
  virtual std::size_t scratch_bytes() const { return 0; }
  // "reference", or the name that the library gives to the implementation it chose.
  virtual std::string implementation() const = 0;
  virtual std::vector<LayoutChange> layout_changes() const { return {}; }
  // The number of library primitives that a run executes, including changes of layout.
  virtual std::int64_t library_calls() const { return 0; }
};

// Packs an operand that many runs share, such as weights, into the layout that the op's kernel reads. Belongs to one
// worker, like a kernel.
class CpuPreparation {
 public:
  virtual ~CpuPreparation() = default;
  virtual std::size_t bytes() const = 0;  // bytes of the result
  virtual std::size_t scratch_bytes() const { return 0; }
  // For example "BA16a64b". Results with equal strings have the same layout.
  virtual std::string layout() const = 0;
  virtual void run(const std::byte* from, std::byte* to, std::byte* scratch) = 0;
};

// Declares, in place of cpu(), that the CPU kernel of an op is its reference kernel.
struct UseReference {
  std::string_view because;
};
// Declares that the runtime itself carries out an op (collectives, the loop, pvary).
struct RuntimeOp {
  std::string_view because;
};

using ReferenceFunction = void (*)(const void* op, const ReferenceCall& call);

// A kernel that calls `function`, which is a reference kernel or has the same signature, for each device in turn.
std::unique_ptr<CpuKernel> make_reference_kernel(std::shared_ptr<const void> op, ReferenceFunction function,
                                                 const CpuRequest& request, std::string name = "reference");

// Limits OpenMP on the calling thread to one thread. Every thread must call this before it creates or runs kernels,
// because new threads use all cores by default.
void use_one_thread_in_libraries();

}  // namespace pmaptrain
