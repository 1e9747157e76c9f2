// Lowering of programs: the implementation of lower(), in lower.cpp and lower_collectives.cpp.
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

  // ---- instances, and where pieces may be cut

  // The axes over which a value of this type has separate slices. Replicas share one slice, unless copies are private.
  AxisSet stored(const Type& type) const { return options_.private_copies ? all() : type.varying; }

  void cut_by_rows();

  // ---- values

  void define(Value value, ValueInfo how);

  Class class_of(AxisSet axes, std::int64_t elements) const;

  // A replicated batch input is stored once, because no worker writes it.
  void define_input(const Input& input);

  // The first stage in which an instruction like `reader` may read a value. Reading what other workers have written
  // requires a barrier in between.
  int readable(const ValueInfo& read, const ValueInfo& reader) const;
  // The first stage in which `equation`, computed like `reader`, may read its operands, which are given by their roots.
  int first_stage(const Equation& equation, std::span<const int> operands, const ValueInfo& reader) const;
  // The input with this root; null if the root is not an input.
  const Input* input_of(int root) const;

  // The root that instructions on the pieces of `cut` read for `value`; a cut of -1 stands for instructions on no
  // pieces. A sum over rows is completed first, which takes a barrier, unless it is read on its own cut.
  int source(Value value, int cut);

  int complete(int root);

  // How a value of this type is computed in `stage`: instance by instance, or in chunks if it is large.
  ValueInfo by_instance(const Type& type, int stage);
  ValueInfo by_size(const Type& type, int stage);
  ValueInfo made(Class of, const Type& type, int stage);
  bool is_on_rows(const ValueInfo& how) const { return rows_cut_ >= 0 && how.cut == rows_cut_; }

  int add_accumulator(const Type& of, int cut);

  int cut_for(const ValueInfo& how) { return how.of == Class::varying ? out_.cut_of(how.axes) : -1; }

  // ---- equations

  // Appends an instruction to the body of the current loop, if there is one, else to a stage.
  void add(Instruction instruction, const ValueInfo& like, int stage, std::int64_t elements = 0);

  void lower_equation(const Equation& equation);

  // If the results live in the operand's memory, makes them aliases or ranges of it. Returns false otherwise.
  bool try_make_alias(const Equation& equation);

  // An equation without operands is computed once, when the plan is loaded. Returns false for other equations.
  bool try_make_constant(const Equation& equation);

  void lower_local(const Equation& equation);

  ValueInfo how_to_compute(const Equation& equation);

  // ---- operands in the layout of the kernels that read them

  // The index of the operand that should be packed for the op's kernel. It is a parameter or the cast of one, so the
  // packed copy serves all pieces, microbatches and devices.
  std::optional<std::size_t> prepared_operand(const Equation& equation);

  // Whether this root is a parameter that is equal on all devices.
  bool is_parameter(int root) const;

  // Finds the casts and packings of parameters that run before all pieces, so that pieces need no barrier in between.
  // Sets `first_`.
  void plan_preparations();

  // The stage in which the parameter or cast with this root is packed.
  int preparation_stage(int root) const { return preparatory_.contains(root) ? 1 : 0; }

  void prepare_operands(Kernel& kernel);

  // ---- collectives

  void lower_exchange(const Equation& equation);

  // The state of one operand of a reduction, or of one array in an operand that is a bucket.
  struct Half {
    Value operand;
    Value result;  // of the reduction; for an array in a bucket, a range of it
    Value bucket;  // the result of the reduction
    ReduceCombine combine;
    bool of_rows = false;   // the addends are sums over rows
    bool in_parts = false;  // tasks compute the whole sum (Parts), so there is nothing left to combine
  };

  // Whether each piece adds up the slices of its own instances first. This requires that the pieces compute the value
  // and that the result is the sum over all devices. The order of the sum is the same with private copies.
  bool starts_on_instances(const Equation& equation, const ValueInfo& operand, const Type& of) const;

  // The equation that the first half of a reduction carries out: the reduction itself, or a psum in place of
  // psum_scatter.
  const Equation* start_of(const Equation& equation);

  // Lowers a reduction in two halves. Pieces first leave their addends in accumulators, or as slices of the operand.
  // After a barrier these are combined in order.
  void lower_reduction(const Equation& equation);

  // One half for each operand, and for each array of a bucket.
  std::vector<Half> halves_of(const Equation& equation);

  // How the result of a reduction is stored, and zeros between the arrays of a bucket.
  void define_results(const Equation& equation, std::span<const Half> halves, int published);

  // Copies sums with several instances into the buckets that are the results of a reduction.
  void pack_instances(const Equation& equation, std::span<const Half> halves);

  // A constant with the zeros that lie between the arrays of a bucket.
  int zeros(DType dtype);

  void finish_reduction(const Equation& equation, const Half& half, int published);

  // Whether an instruction's results are sums over rows that only the current reduction reads.
  bool sums_rows_for(const Instruction& instruction) const;

  // Calls f with each list of instructions that runs on the cut by rows.
  template <class F>
  void for_each_list_on_rows(F&& f);

  // Lets the instructions for which sums_rows_for() holds write directly into their piece's accumulators.
  void sum_rows_of_pieces(const std::vector<Half>& halves);

  // Handles sums that are so large that their accumulators would move more memory than the rows they add. These get no
  // accumulators: all rows are kept, and after the barrier tasks add them up, each for one part of the result.
  void sum_rows_in_parts(const Equation& psum, std::vector<Half>& halves, int published);

  // Compares the bytes of all pieces' accumulators with the bytes of the rows. A result with few rows is not divided
  // into parts, which would be too small for efficient products.
  bool is_better_in_parts(const Equation& equation) const;

  // Emits one sum for the whole mesh. With private copies, each device then copies it.
  void lower_parts(std::vector<Half>& halves, int published, Kernel kernel);

  // ---- loops

  // Lowers a loop without collectives to one instruction. If any of its inputs varies, all of its carries must vary.
  void lower_loop(const Equation& equation);

  // Lowers a loop in which devices communicate to stages of its own. Everything before it runs in earlier stages, and
  // everything after it in later ones.
  void lower_stage_loop(const Equation& equation);
  // Copies the yielded values to the carries in stages of their own.
  void lower_stage_yields(const Equation& equation);

  // Appends copies of the yielded values to the carries at the end of the body.
  void append_yields(const Equation& equation, const std::vector<int>& carries, Loop& loop);

  [[noreturn]] void refuse_mixed_carries(const Equation& equation, Value carry) const;

  // Lowers outputs. If an output is an input that this step replaces, the old value is copied first.
  void lower_outputs();

  const Program& program_;
  const PlanOptions options_;
  Lowered out_;
  std::vector<const Input*> inputs_;  // by value
  int rows_cut_ = -1;                 // the cut by rows; -1 if there is none
  std::map<int, int> completed_;      // completed sums over rows, by the root of their addends
  std::map<DType, int> zeros_;
  std::map<std::int32_t, PackedSum> packed_sums_;
  // For the current reduction: the first operand number of each value.
  std::unordered_map<int, std::size_t> operand_number_;
  std::set<int> summed_;                             // values that exist only as accumulators of pieces
  std::shared_ptr<const pmaptrain::Origin> origin_;  // origin of the current equation
  std::set<int> preparatory_;                        // roots of casts of parameters that run before all pieces
  int first_ = 0;  // all other instructions run from this stage on; earlier stages only prepare operands
  std::vector<Instruction>* loop_ = nullptr;
  ValueInfo loop_like_;
};

}  // namespace pmaptrain::cpu
