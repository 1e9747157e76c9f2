// From a plan's instructions to a worker's commands: kernels for the shapes that there are, and addresses.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/ops/all.h"
#include "core/runtime/cpu/command.h"
#include "core/runtime/cpu/plan.h"

namespace pmaptrain::cpu {

// What makes kernels and preparations.
struct Kernels {
  KernelChoice choice = KernelChoice::best;
  // In place of make_cpu_kernel, for tests; called on the thread of the worker that will run the kernel.
  std::function<std::unique_ptr<CpuKernel>(const Op& op, const CpuRequest& request)> make = {};
};

// A list and what it is to run on (but for the step's parity and the batch's slot).
struct Task {
  CommandList* list = nullptr;
  TaskOrigin origin;
  double share = 0;  // where it stands among the tasks of its kind, from 0 to 1: their order
};

struct BoundStage {
  CommandList once;
  std::vector<Task> tasks;  // the same for every worker: chunks, parts, preparations, pieces
};

// A plan bound for one worker. To be made on the thread that will run it.
class Bound {
 public:
  Bound(const Plan& plan, const Kernels& kernels);
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

  std::vector<BoundStage>& stages() { return stages_; }
  const std::vector<BoundStage>& stages() const { return stages_; }
  // Of the kernel that needs most.
  std::size_t scratch_bytes() const;
  // The op, shapes and device count of every kernel, a line each, in order: what libraries are asked for.
  std::string shapes() const;

 private:
  // What instructions are bound for: a range of devices, elements or rows of a result.
  struct Extent {
    enum class Kind : std::uint8_t { once, chunk, part, piece } kind = Kind::once;
    std::int64_t devices = 1;   // of a piece
    std::int64_t elements = 0;  // of a chunk, or rows of a part
    std::int64_t whole = 0;     // elements of the array that is cut into chunks
  };

  void bind(const Stage& stage, BoundStage& bound);
  void bind(const std::vector<Instruction>& instructions, const Extent& extent, CommandList& list,
            std::vector<Command>& into);
  RunKernel bind(const Kernel& kernel, const Extent& extent, CommandList& list);
  RunKernel bind(const RowSums& sums, const Extent& extent, CommandList& list);
  CopyRuns bind(const Copy& copy, const Extent& extent, CommandList& list);
  Pack bind(const Prepare& prepare, const Extent& extent, CommandList& list);
  Reduce bind(const Start& start, const Extent& extent, CommandList& list);
  Reduce bind(const Done& done, const Extent& extent, CommandList& list);
  RunExchange bind(const Exchange& exchange, const Extent& extent, CommandList& list);
  RunLoop bind(const Loop& loop, const Extent& extent, CommandList& list);
  RunKernel bind(const Parts& parts, const Extent& extent, CommandList& list);
  void bind_parts(const Instruction& instruction, BoundStage& bound);

  const Buffer& buffer(int index) const { return plan_.buffers[static_cast<std::size_t>(index)]; }
  Address address(int index, const Extent& extent) const;
  Address accumulator(int index, std::size_t piece, const Extent& extent) const;
  CommandList& new_list() { return lists_.emplace_back(); }
  CpuKernel* kernel(const Op& op, const CpuRequest& request);

  const Plan& plan_;
  const Kernels& make_;
  std::vector<BoundStage> stages_;
  std::deque<CommandList> lists_;
  std::map<std::string, std::unique_ptr<CpuKernel>> kernels_;
  std::map<int, const Kernel*> readers_;  // by packed buffer: the kernel that reads it
  std::vector<std::unique_ptr<CpuPreparation>> preparations_;
};

// Asks the libraries which operands they would rather have packed. Those that they take as they are lose their Prepare
// instruction; the others get their place in the packed pool, whose bytes are returned.
std::size_t settle_packing(Plan& plan, const Kernels& kernels);

}  // namespace pmaptrain::cpu
