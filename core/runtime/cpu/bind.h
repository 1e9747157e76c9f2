// From a plan's instructions to a worker's commands: kernels for the shapes that there are, and addresses.
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

// A list that one worker runs.
struct Task {
  CommandList* list = nullptr;
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
  // What the lists of commands take, without kernels.
  std::size_t command_bytes() const;
  // The op, shapes and device count of every kernel, a line each, in order: what libraries are asked for.
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
  // What the instances of a collective's group read in common: addresses of a list. A list has them once, since they
  // are as many as the instances are.
  struct Members {
    std::size_t at = 0, count = 0;
    std::optional<std::int64_t> first;  // instance of the extent whose result is bound
  };
  using Groups = std::map<std::int64_t, Members>;  // by the place of a group among all
  template <class Addresses>
  Members& group_of(std::int64_t device, AxisSet along, Groups& groups, CommandList& list, Addresses&& addresses) const;
  RunExchange exchange_of(const Exchange& exchange, std::int64_t device, const Members& members, std::int64_t i,
                          Binding to);
  std::vector<CopyRuns> slices_of(const Copy& slice, std::int64_t iterations, Binding to);
  // The addresses of the addends that are reduced into `device`'s instance of the result: the accumulators of the
  // pieces, or the operand's instances in the group.
  std::vector<Address> addends_of(const ReduceCombine& combine, std::int64_t device, const Extent& extent) const;
  const Buffer& buffer(int index) const { return plan_.buffers[static_cast<std::size_t>(index)]; }
  // Of a buffer for an extent: of the rows at hand where `rows`, else of the slice of the first instance.
  Address address(int index, const Extent& extent, bool rows = false) const;
  Address accumulator(int index, std::size_t piece, const Extent& extent) const;
  CpuKernel* kernel(const Op& op, const CpuRequest& request);
  // Regions that compute the same have one number, so that a kernel is made once for all of them.
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
