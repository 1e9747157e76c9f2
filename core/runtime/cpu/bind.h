// Turns the instructions of a plan into commands of a worker: creates kernels for the required shapes and computes
// addresses.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/all.h"
#include "core/runtime/cpu/command.h"
#include "core/runtime/cpu/request.h"

namespace pmaptrain::cpu {

// A command list that a single worker runs.
struct Task {
  CommandList* list = nullptr;
  double share = 0;  // position among the tasks of its kind, from 0 to 1; tasks are sorted by it
};

struct BoundStage {
  CommandList once;
  std::vector<Task> tasks;  // chunks, parts, preparations and pieces; equal for every worker
};

// A plan bound for one worker. It must be created on the thread that will run it.
class BoundPlan {
 public:
  BoundPlan(const Plan& plan, const Kernels& kernels);
  BoundPlan(const BoundPlan&) = delete;
  BoundPlan& operator=(const BoundPlan&) = delete;

  std::vector<BoundStage>& stages() { return stages_; }
  const std::vector<BoundStage>& stages() const { return stages_; }
  const Plan& plan() const { return plan_; }
  // The scratch memory of the kernel that needs most.
  std::size_t scratch_bytes() const;
  // The memory of the command lists, without kernels.
  std::size_t command_bytes() const;
  // The op, shapes and device count of every kernel, one per line, in order: the shapes of all library calls.
  std::string shapes() const;

 private:
  struct Binding {
    const Extent& extent;
    CommandList& list;
  };

  void bind(const Stage& stage, BoundStage& bound);
  void bind(std::span<const Instruction> instructions, Binding to, std::vector<Command>& into);
  void bind(const Kernel& kernel, const Instruction& instruction, Binding to, std::vector<Command>& into);
  void bind(const RowSums& sums, const Instruction& instruction, Binding to, std::vector<Command>& into);
  void bind(const Parts& parts, const Instruction& instruction, Binding to, std::vector<Command>& into);
  void bind(const Copy& copy, const Instruction& instruction, Binding to, std::vector<Command>& into);
  void bind(const PackOperand& pack, const Instruction& instruction, Binding to, std::vector<Command>& into);
  void bind(const ReducePartial& partial, const Instruction& instruction, Binding to, std::vector<Command>& into);
  void bind(const ReduceCombine& combine, const Instruction& instruction, Binding to, std::vector<Command>& into);
  void bind(const Exchange& exchange, const Instruction& instruction, Binding to, std::vector<Command>& into);
  void bind(const Loop& loop, const Instruction& instruction, Binding to, std::vector<Command>& into);
  template <class Of>
  void bind_tasks(const Of& of, BoundStage& bound);

  std::size_t slices_between(const Buffer& b, const Extent& extent) const;
  CopyRuns copy_of(const Copy& copy, Binding to);
  Address slice_of(int index, std::int64_t i, const Extent& extent) const;
  // The addresses that all instances of a collective's group read. A command list stores them once per group: storing
  // them per instance would need quadratic memory.
  struct Members {
    std::size_t at = 0, count = 0;
    std::optional<std::int64_t> first;  // the first instance in the extent whose result is bound
  };
  using Groups = std::map<std::int64_t, Members>;  // by the index of the group
  template <class Addresses>
  Members& group_of(std::int64_t device, AxisSet along, Groups& groups, CommandList& list, Addresses&& addresses) const;
  RunExchange exchange_of(const Exchange& exchange, std::int64_t device, const Members& members, std::int64_t i,
                          Binding to);
  std::vector<CopyRuns> slices_of(const Copy& slice, std::int64_t iterations, Binding to);
  // The addresses of the addends that are reduced into the result of `device`: accumulators of pieces, or the operand's
  // slices in the group.
  std::vector<Address> addends_of(const ReduceCombine& combine, std::int64_t device, const Extent& extent) const;
  const Buffer& buffer(int index) const { return plan_.buffers[static_cast<std::size_t>(index)]; }
  // The part of a chunk of a bucket that lies in the range which the instruction writes, relative to that range. None
  // if the two do not overlap. Other extents are returned as they are.
  std::optional<Extent> extent_in_bucket(const Instruction& instruction, const Extent& extent) const;
  // The address of a buffer for an extent: of its current rows if `rows`, else of the slice of its first instance.
  Address address(int index, const Extent& extent, bool rows = false) const;
  Address accumulator(int index, std::size_t piece, const Extent& extent) const;
  CpuKernel* kernel(const Op& op, const CpuRequest& request);
  // Numbers regions. Regions that compute the same have the same number and share their kernels.
  int number_of(const Region& region);

  const Plan& plan_;
  const Kernels& make_;
  std::vector<BoundStage> stages_;
  std::deque<CommandList> lists_;
  std::map<std::string, std::unique_ptr<CpuKernel>> kernels_;
  std::map<const Region*, int> region_numbers_;
  std::map<std::string, int> region_texts_;
  std::map<int, std::unique_ptr<CpuPreparation>> preparations_;  // by packed buffer
};

}  // namespace pmaptrain::cpu
