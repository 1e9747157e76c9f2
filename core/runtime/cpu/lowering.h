// The implementation of lower(), in lower.cpp and lower_collectives.cpp.
//
// Here a `ValueInfo` named `how` says how a value is computed and stored.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/analysis/packed_sums.h"
#include "core/runtime/cpu/lower.h"

namespace pmaptrain::cpu {

class Lowering {
 public:
  Lowering(const Program& program, const PlanOptions& options, std::int64_t target);

  Lowered run();

 private:
  ValueInfo& info(Value value) { return out_.info(value.id); }
  const Type& type(Value value) const { return out_.type(value.id); }
  const ValueFacts& facts(Value value) const { return out_.facts.of(value); }
  AxisSet all() const { return program_.mesh.all(); }

  // The axes along which a value of this type has separate slices: those over which it varies, or all axes if each
  // device has private copies.
  AxisSet stored_axes(const Type& type) const { return options_.private_copies ? all() : type.varying; }

  // The axes along which the memory of `value` has separate slices.
  AxisSet axes_in_memory(Value value) const;
  // Finds Lowered::mixed.
  void find_mixed(const std::vector<Equation>& equations);

  // Adds the cuts on which equations on rows run: one for each set of axes over which their results vary. A cut is not
  // added if one into whole instances gives enough pieces; then these equations run on whole instances.
  void cut_by_rows();
  void cut_by_rows(AxisSet varying);

  // ---- values

  // Makes `value` its own root, with the given info.
  void define(Value value, ValueInfo how);

  // The storage of a value with slices along `axes` and `elements` elements in each slice.
  Storage storage_of(AxisSet axes, std::int64_t elements) const;

  void define_input(const Input& input);

  // The first stage in which an instruction whose results are `reader` may read a value. If other workers may have
  // written what it reads, that is a stage after the one that writes the value, so that a barrier lies between them.
  int first_readable_stage(const ValueInfo& read, const ValueInfo& reader) const;
  // The stage before which nothing that reads the value runs: that of what its optimization_barrier waits for.
  int earliest_stage(Value value) const;
  // The first stage in which `equation`, whose results are `reader`, may run. `operands` are the roots of its operands.
  int first_stage(const Equation& equation, std::span<const int> operands, const ValueInfo& reader) const;
  // The input with this root; null if the root is not an input.
  const Input* input_of(int root) const;

  // The root that instructions read for `value`. `cut` is the cut on whose pieces they run, or -1. That is the value's
  // own root, with one exception: if the value is a sum over the rows of each piece, and the instructions run elsewhere
  // than on the same cut, they read the complete sum (see complete_sum).
  int root_to_read(Value value, int cut);
  // The same for instructions that run like `how`. Pieces of a cut by rows read rows of successive instances, but with
  // private copies a value has a slice for each device. Then they read a copy with one slice for each instance.
  int root_to_read(Value value, const ValueInfo& how);

  // Adds the instructions that add up the sums of all pieces, in two stages. Returns the root of the complete sum.
  int complete_sum(int root);

  // The info of a value of this type that `stage` computes: whole instances at a time, or in chunks if the value is
  // large.
  ValueInfo info_by_instance(const Type& type, int stage);
  ValueInfo info_by_size(const Type& type, int stage);
  ValueInfo make_info(Storage storage, const Type& type, int stage);
  // The info of a value of this type that pieces of rows compute.
  ValueInfo info_on_rows(const Type& type, int stage = 0) const;
  bool is_on_rows(const ValueInfo& how) const { return out_.is_by_rows(how.cut); }

  // Adds an accumulator for addends of type `of` and returns its index.
  int add_accumulator(const Type& of, int cut);

  // The cut for values like `how`: a cut into whole instances, or -1 if the value is not computed on pieces.
  int cut_for(const ValueInfo& how) { return how.storage == Storage::varying ? out_.cut_of(how.axes) : -1; }

  // ---- equations

  // Appends an instruction to the body of the loop that is being lowered, if there is one, else to a stage (see
  // Lowered::add).
  void add(Instruction instruction, const ValueInfo& like, int stage, std::int64_t elements = 0);

  void lower_equation(const Equation& equation);

  // Handles equations whose results live in the operand's memory, so that they need no instruction: the result of a
  // view gets the info of the operand, and those of an unpack become arrays inside the bucket. Returns false for other
  // equations.
  bool try_make_alias(const Equation& equation);

  // Handles an equation without operands, which is computed once, when the plan is loaded. Returns false for others.
  bool try_make_constant(const Equation& equation);

  // Lowers an equation without communication.
  void lower_local(const Equation& equation);

  // The ValueInfo of the results of an equation that does not communicate and is not in the body of a loop.
  ValueInfo info_of_results(const Equation& equation);

  // ---- preparations: packed operands, and the casts of parameters that are computed before them

  // The index of the operand that is packed for the op's kernel, if any. It is a parameter, or the cast of one, that is
  // equal on all devices, so one packed copy serves all pieces, microbatches and devices.
  std::optional<std::size_t> operand_to_pack(const Equation& equation);

  // Whether this root is an input of the group params that is equal on all devices, or an array inside such a bucket.
  bool is_parameter(int root) const;

  // Finds the casts of parameters that equations on rows read. These casts and all packing run in stages of their own
  // at the begin of the step, so that no barrier for them interrupts the work on pieces. Sets `early_casts_` and
  // `first_main_stage_`.
  void plan_preparations();

  // The stage that packs the operand with this root: stage 0 computes the early casts, so those are packed in stage 1.
  int preparation_stage(int root) const { return early_casts_.contains(root) ? 1 : 0; }

  // Adds the PackOperand for the kernel's operand_to_pack(), if any, and lets the kernel read its result.
  void pack_operands(Kernel& kernel);

  // ---- collectives

  // Lowers a collective that moves data between devices; the second function for one operand, which `of` is.
  void lower_exchange(const Equation& equation);
  void lower_exchange(const Equation& equation, std::size_t index, Value of);
  // Lowers a psum_scatter to a psum; then each device copies its part of the sum.
  void lower_psum_scatter(const Equation& equation);

  // One array that a reduction sums: an operand, or one of the arrays that a `pack` puts into an operand that is a
  // bucket. Such arrays are summed one by one, and the bucket of the addends is never made.
  struct ReducedArray {
    std::size_t index;      // of the reduction's operand
    Value operand;          // the addends
    Value sum_of_rows;      // `operand`, or what it is a view of: the result of an equation that sums over rows
    Value result;           // the sum: a result of the reduction, an array inside such a result, or a value of its own
    Value bucket;           // if `result` is inside a bucket: the bucket; else equal to `result`
    ReduceCombine combine;  // the second half of the reduction
    bool of_rows = false;   // the addends are sums over the rows of pieces
    bool in_parts = false;  // a ProductInParts computes the whole sum, or what this process contributes to it
    int sums = -1, received = -1;               // see ReduceCombine::Step; -1 if no process sends anything
    std::shared_ptr<const RankSum> ranks = {};  // null in that case
    int last_stage = 0;                         // the stage of the last ReduceCombine
  };

  // Whether each piece first reduces the slices of its own instances into an accumulator. This requires that pieces
  // compute the value, and that the reduction is over all devices. The order of the sum is the same with private
  // copies.
  bool pieces_add_instances(const Equation& equation, const ValueInfo& operand, const Type& of) const;

  // The value whose memory `value` shows, if only views lie between the two and nothing else reads them; else `value`.
  Value viewed_by(Value value) const;

  // Lowers a reduction. In its first half, pieces leave their addends in accumulators, or as slices of the operand. In
  // the second half, after a barrier, the addends are combined in order. Below, `combine_stage` is the stage of this
  // half. `of` is the equation of the program: `equation` itself, or the psum_scatter that is lowered to `equation`.
  void lower_reduction(const Equation& equation, const Equation& of);

  // The arrays that the reduction sums, in the order of its operands and of the arrays in each bucket.
  std::vector<ReducedArray> reduced_arrays_of(const Equation& equation);

  // If processes must exchange sums for this reduction: lets each array be reduced in three steps (ReduceCombine::Step)
  // in stages from `combine_stage` on, of large sums from a stage after that in which the last one began. Returns the
  // first of these stages, and sets the last one of each array.
  int exchange_sums(const Equation& of, std::vector<ReducedArray>& arrays, int combine_stage);
  // Whether a gather of all instances of a value is an array of them, one after another, which workers share.
  bool joins_instances(const Equation& gather) const;
  // Adds a value for contributions of processes, which tasks write in `stage`. It has the type of value `like`.
  int add_contributions(int like, std::int64_t contributions, int stage);
  // Adds values to the Communicate of a stage.
  void communicate(const Equation& equation, Communicate::Values values, int stage);

  // Defines the results of a reduction, and adds copies of zeros into the gaps between the arrays of a bucket.
  void define_results(std::span<const ReducedArray> arrays);

  // Where a result is a bucket with several slices: adds the `pack` that copies the sums of its arrays into each slice.
  void add_packs_of_sums(const Equation& equation, std::span<const ReducedArray> arrays);

  // The root of a constant of zeros that is at least as long as a gap between the arrays of a bucket.
  int zeros(DType dtype, std::int64_t gap);

  // Adds the second half of a reduction for one array, and the first half if no RowSums carries it out.
  void finish_reduction(const Equation& equation, const ReducedArray& array, int combine_stage);

  // Whether an instruction sums over rows, and only the reduction that is being lowered reads its results.
  bool sums_rows_for_reduction(const Instruction& instruction) const;

  // Calls f(instructions) for the instructions of every stage that run on a cut by rows.
  template <class F>
  void for_each_list_on_rows(F&& f);

  // Replaces instructions for which sums_rows_for_reduction() holds by RowSums, which write into accumulators.
  void accumulate_rows_of_pieces(const std::vector<ReducedArray>& arrays);

  // Replaces sums over rows for which is_better_in_parts() holds by ProductInParts. These need no accumulators: the
  // operands are kept for all rows, and after the barrier each task computes one part of the result from all rows.
  void sum_rows_in_parts(const Equation& psum, std::vector<ReducedArray>& arrays, int combine_stage);

  // Whether a sum over rows is so large that the accumulators of all pieces would take more bytes than the rows that it
  // sums. False if the result has too few rows for efficient products in parts.
  bool is_better_in_parts(const Equation& equation) const;

  // Whether each piece has an addend of the value for its devices. A view over more axes is the same sum on several
  // devices, each of which adds it to others.
  bool sums_of_pieces(Value value) const;

  // Whether pieces of rows add the rows of several devices (RowFacts).
  bool adds_on_rows(const ReducedArray& array) const;

  // Adds the ProductInParts, which computes one sum of all examples for each instance of the result, beside others:
  // `products` with it. With private copies, each device then copies it.
  void lower_parts(const Equation& psum, std::vector<ReducedArray>& arrays, int combine_stage, std::int64_t products,
                   Kernel kernel);
  // Whether the program computes activations again. Then it needs memory more than it needs tasks for many workers at a
  // time: a product in parts runs as early as its operands can be read, because their memory is free afterwards.
  bool computes_again() const { return !earliest_stages_.empty() && out_.loops.empty(); }

  // ---- loops

  // Lowers a loop without collectives to one instruction. Throws Error (usage) if any operand or inner value varies,
  // but a carry does not.
  void lower_loop(const Equation& equation);

  // Lowers a loop in which devices communicate to stages of its own. Everything before it runs in earlier stages, and
  // everything after it in later ones.
  void lower_stage_loop(const Equation& equation);
  // Copies the yielded values to the carries in stages of their own.
  void lower_stage_yields(const Equation& equation);

  // Appends to the body the copies from the values that the body yields to the carries.
  void append_yields(const Equation& equation, const std::vector<int>& carries, Loop& loop);

  [[noreturn]] void refuse_mixed_carries(const Equation& equation, Value carry) const;

  // Finds the roots of the outputs. An output that is an input which the step replaces is a copy of the old value.
  void lower_outputs();

  const Program& program_;
  const PlanOptions options_;
  Lowered out_;
  std::vector<const Input*> inputs_;              // by value
  std::unordered_map<int, int> earliest_stages_;  // by value, where it is not 0
  std::map<int, int> complete_sums_;  // by the root of the addends: the root that complete_sum() has returned
  std::map<std::pair<DType, std::int64_t>, int> zeros_;  // see zeros(); by their number
  std::map<std::int32_t, PackedSum> packed_sums_;        // by value: see packed_sums.h
  std::optional<Distribution> distribution_;
  int stage_after_large_sum_ = 0;  // the first stage in which another sum may begin that processes add in parts
  // The next two belong to the reduction that is being lowered. array_of_: for each value that is a sum over rows, the
  // index of its first ReducedArray. accumulated_: values that RowSums write, so that they have no buffer.
  std::unordered_map<int, std::size_t> array_of_;
  std::set<int> accumulated_;
  std::shared_ptr<const Origin> origin_;   // of the equation that is being lowered
  std::set<int> early_casts_;              // see plan_preparations(); roots
  std::unordered_map<int, Value> viewed_;  // by value that is a view: its operand
  // Instructions are added to this stage or a later one: behind the preparations, and behind or in a loop over stages.
  int first_main_stage_ = 0;
  std::vector<Instruction>* loop_body_ = nullptr;  // the body of the Loop that is being lowered; null outside of loops
  ValueInfo loop_info_;                            // how that loop runs
};

}  // namespace pmaptrain::cpu
