// Binds the instructions of a plan for a worker: turns them into commands, for which it creates kernels of the required
// shapes and computes addresses.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/mesh/share.h"
#include "core/ops/all.h"
#include "core/runtime/cpu/command.h"
#include "core/runtime/cpu/request.h"

namespace pmaptrain::cpu {

inline std::size_t count_of(std::int64_t n) { return static_cast<std::size_t>(n); }

// A unit of work of a stage, which one worker runs.
struct Task {
  CommandList* list = nullptr;
  // The position among the tasks that come from the same list of the stage, between 0 (the first) and 1 (the last).
  double relative_position = 0;
  bool of_piece = false;
  // Whether this task and the one before it compute pieces by the same instructions, so that a worker can run both
  // abreast.
  bool like_previous = false;
};

struct BoundStage {
  CommandList every_worker;  // see Stage
  std::vector<Task> tasks;   // sorted by relative_position; task i is the same work for every worker
};

// A plan bound for one worker. It must be created on the thread that will run it.
class BoundPlan {
 public:
  // `transport` may be null if the plan is not run, or has one process. `first_process` is the number there of the
  // first of the plan's processes.
  BoundPlan(const Plan& plan, const KernelFactory& kernels, Transport* transport = nullptr, int first_process = 0);
  BoundPlan(const BoundPlan&) = delete;
  BoundPlan& operator=(const BoundPlan&) = delete;

  std::vector<BoundStage>& stages() { return stages_; }
  const std::vector<BoundStage>& stages() const { return stages_; }
  const Plan& plan() const { return plan_; }
  // The bytes of scratch memory that a worker needs to run any of the kernels.
  std::size_t scratch_bytes() const;
  // The bytes of the command lists, without kernels.
  std::size_t command_bytes() const;
  // The op, shapes and device count of every kernel, one per line, in order: the shapes of all library calls.
  std::string shapes() const;

 private:
  // What an instruction is bound for: the share of its work that a command does, and the list that has the addresses.
  struct Binding {
    const Extent& extent;
    CommandList& list;
  };

  void bind(const Stage& stage, BoundStage& bound);
  void bind(std::span<const Instruction> instructions, Binding to, std::vector<Command>& into);
  void bind(const Kernel& kernel, const Instruction& instruction, Binding to, std::vector<Command>& into);
  void bind(const RowSums& sums, const Instruction& instruction, Binding to, std::vector<Command>& into);
  void bind(const ProductInParts& parts, const Instruction& instruction, Binding to, std::vector<Command>& into);
  void bind(const Copy& copy, const Instruction& instruction, Binding to, std::vector<Command>& into);
  void bind(const PackOperand& pack, const Instruction& instruction, Binding to, std::vector<Command>& into);
  void bind(const ReducePartial& partial, const Instruction& instruction, Binding to, std::vector<Command>& into);
  void bind(const ReduceCombine& combine, const Instruction& instruction, Binding to, std::vector<Command>& into);
  // The same for the rows of a piece, which are those of some instances.
  void bind_rows(const ReduceCombine& combine, const Instruction& instruction, Binding to, std::vector<Command>& into);
  void bind(const Communicate& communicate, const Instruction& instruction, Binding to, std::vector<Command>& into);
  void bind(const Exchange& exchange, const Instruction& instruction, Binding to, std::vector<Command>& into);
  // The copies of an all_slice, each of the part of an array that is a device's own.
  void bind_own_parts(const Exchange& slice, const Instruction& instruction, Binding to, std::vector<Command>& into);
  void bind(const Loop& loop, const Instruction& instruction, Binding to, std::vector<Command>& into);
  // Emits the part of a product that sums over the rows of `runs` of instances: those of each block in order, then the
  // blocks in a tree. `sums` is where the arena is free for the sums that are added to others.
  void bind_product(const ProductInParts& parts, const Instruction& instruction, std::span<const IndexRange> runs,
                    Address result, std::size_t sums, Binding to, std::vector<Command>& into);
  // The same for one run.
  void bind_product(const ProductInParts& parts, const Instruction& instruction, const IndexRange& instances,
                    Address result, Binding to, std::vector<Command>& into);
  template <class Of>
  void bind_tasks(const Of& of, BoundStage& bound);

  // A copy for each run of instances whose slices are equally far apart in both buffers. An instance is
  // left out if the other buffer has no slice for it in this process, because then no device of this process reads it.
  std::vector<StridedCopy> strided_copies(const Copy& copy, Binding to);
  // The address of the slice of instance number `i` of a piece.
  Address slice_of(int index, std::int64_t i, const Extent& extent) const;
  // Where a command list has the operands of a group, that is, of the devices that communicate in a collective. The
  // list stores them once per group and not for each device, which would need quadratic memory.
  struct GroupAddresses {
    std::size_t first_pointer = 0, count = 0;
    // The first instance of the group that has been bound. If all devices of a group receive the same, the others copy
    // its result.
    std::optional<std::int64_t> first_instance;
  };
  // The command that computes the result of instance number `i`, which belongs to `device`.
  RunExchange exchange_of(const Exchange& exchange, std::int64_t device, const GroupAddresses& group, std::int64_t i,
                          Binding to);
  // The copies that bring an iteration's part of a loop operand into its buffer. If the piece is a range of rows, they
  // copy only those rows of the part that belong to the piece.
  std::vector<StridedCopy> copies_of_slices(const Copy& slice, std::int64_t iterations, Binding to);
  struct Addend {
    Address address;
    std::int64_t block = 0;
  };
  struct Addends {
    std::vector<Address> addresses;
    std::vector<TreeNode> tree;  // see CollectiveCall
  };
  // The addends that this process has of the result that belongs to `device`: the accumulators of the pieces of its
  // group, or the operand's slices of the devices of its group.
  std::vector<Addend> addends_of(const ReduceCombine& combine, std::int64_t device, const Extent& extent) const;
  static Addends as_tree(const std::vector<Addend>& addends);
  // The sums of all processes for the result that belongs to `device`.
  Addends sums_of(const ReduceCombine& combine, std::int64_t device, const Extent& extent) const;
  // Those of the two that the step of the reduction adds.
  Addends addends_or_sums_of(const ReduceCombine& combine, std::int64_t device, const Extent& extent) const;
  // The address of an element of a buffer, counted from the begin of its first slice.
  Address address_in(int index, std::int64_t element) const;
  // The address of a contribution in buffer `index`; in a chunk of its first element.
  Address contribution(int index, const Contribution& which, const Extent& extent) const;
  void add_reduce(const Equation& equation, const Addends& addends, Address result, std::int64_t elements, DType dtype,
                  const Instruction& instruction, Binding to, std::vector<Command>& into);
  const Buffer& buffer(int index) const { return plan_.buffers[static_cast<std::size_t>(index)]; }
  // For an instruction that writes an array inside a bucket, and a chunk of the bucket: the elements of the array that
  // are in the chunk, counted from the array's first element; none if there are none. Else returns `extent`.
  std::optional<Extent> extent_in_bucket(const Instruction& instruction, const Extent& extent) const;
  // The address of buffer `index` for an extent: of the rows of a piece if `rows`, else of the slice of the first
  // instance; in a chunk of its first element.
  Address address(int index, const Extent& extent, bool rows = false) const;
  Address accumulator_address(int index, std::size_t piece, const Extent& extent) const;
  // The first instance along `axes` that this process has.
  std::int64_t first_instance(AxisSet axes) const;
  // The address of the slice that a device of this process reads.
  Address slice_of_device(int index, std::int64_t device) const;
  // The kernel for these shapes. The first call creates it.
  CpuKernel* find_or_make_kernel(const Op& op, const CpuRequest& request);
  CpuKernel* find_or_make_rows_of_sum(const ProductInParts& parts, const Type& indices, const Type& result,
                                      std::int64_t first, const IndexRange& instances);
  // The number of a region. Regions that compute the same have the same number and share their kernels.
  int region_number(const Region& region);

  const Plan& plan_;
  const Share share_;
  mutable std::map<std::uint32_t, std::int64_t> first_instances_;  // by the bits of an AxisSet
  const KernelFactory& kernel_factory_;
  Transport* const transport_;
  const int first_process_;
  std::vector<BoundStage> stages_;
  std::deque<CommandList> task_lists_;
  std::map<std::string, std::unique_ptr<CpuKernel>> kernels_;  // by op and shapes
  std::map<const Region*, int> region_numbers_;
  std::map<std::string, int> region_texts_;  // numbers by a text that describes what the region computes
  std::map<int, std::unique_ptr<CpuPreparation>> preparations_;  // by packed buffer
};

}  // namespace pmaptrain::cpu
