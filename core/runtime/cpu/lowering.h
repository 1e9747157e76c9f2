// How a program is lowered: the work of lower(), in lower.cpp and lower_collectives.cpp.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

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

  // Over which axes a value of this type is stored: of a value that is equal over an axis there is one.
  AxisSet stored(const Type& type) const { return options_.private_copies ? all() : type.varying; }

  void cut_by_rows();

  // ---- values

  void define(Value value, ValueInfo how);

  Class class_of(AxisSet axes, std::int64_t elements) const;

  // There is one copy of a replicated batch input, which no worker writes.
  void define_input(const Input& input);

  // The first stage in which an instruction like `reader` may read the value of a root: what other workers write needs
  // a barrier in between.
  int readable(const ValueInfo& read, const ValueInfo& reader) const;
  // The first in which `equation`, computed like `reader`, may read its operands, by their roots.
  int first_stage(const Equation& equation, std::span<const int> operands, const ValueInfo& reader) const;
  // The input whose value this is; null for any other.
  const Input* input_of(int root) const;

  // The root to read where instructions run on the pieces of `cut` (-1: on none). A sum over rows is complete after a
  // barrier.
  int source(Value value, int cut);

  int complete(int root);

  // How a value of this type is made in `stage`: instance by instance; or in chunks where it is large.
  ValueInfo by_instance(const Type& type, int stage);
  ValueInfo by_size(const Type& type, int stage);
  ValueInfo made(Class of, const Type& type, int stage);
  bool is_on_rows(const ValueInfo& how) const { return rows_cut_ >= 0 && how.cut == rows_cut_; }

  int add_accumulator(const Type& of, int cut);

  int cut_for(const ValueInfo& how) { return how.of == Class::varying ? out_.cut_of(how.axes) : -1; }

  // ---- equations

  // Appends to the loop at hand, or to a stage.
  void add(Instruction instruction, const ValueInfo& like, int stage, std::int64_t elements = 0);

  void lower_equation(const Equation& equation);

  // A view has its operand's memory.
  bool try_make_alias(const Equation& equation);

  // What needs no operand is computed once, when the plan is loaded.
  bool try_make_constant(const Equation& equation);

  void lower_local(const Equation& equation);

  ValueInfo how_to_compute(const Equation& equation);

  // ---- operands in the layout of the kernels that read them

  // The operand that this op's kernel would rather have in a layout of its own: a parameter or its cast, which stay the
  // same for all pieces, microbatches and devices.
  std::optional<std::size_t> prepared_operand(const Equation& equation);

  // Whether this is a parameter of which every device has the same value.
  bool is_parameter(int root) const;

  // Finds what runs before all pieces, so that these need not meet in their midst: parameters in another element type
  // or layout. Sets `first_`.
  void plan_preparations();

  // The stage in which what has this root is packed.
  int preparation_stage(int root) const { return preparatory_.contains(root) ? 1 : 0; }

  void prepare_operands(Kernel& kernel);

  // ---- collectives

  void lower_exchange(const Equation& equation);

  // One operand of a reduction.
  struct Half {
    ReduceCombine combine;
    bool of_rows = false;   // the addends are sums over rows
    bool in_parts = false;  // nothing is left to combine
  };

  // Whether the slices of a value are added up piece by piece: where they are computed, and the sum over all devices is
  // wanted. With private copies the order is the same.
  bool starts_on_instances(const Equation& equation, const ValueInfo& operand, const Type& of) const;

  // The sum whose first half a reduction's pieces carry out: the reduction itself; of psum_scatter, a psum.
  const Equation* start_of(const Equation& equation);

  // Pieces have their addends, in accumulators or as they are; after a barrier these are combined in order.
  void lower_reduction(const Equation& equation);

  void finish_reduction(const Equation& equation, std::size_t i, const Half& half, int published);

  // Whether an instruction's results are sums over rows that only the reduction at hand reads.
  bool sums_rows_for(const Instruction& instruction) const;

  // Calls f with the instructions of each stage on the cut by rows.
  template <class F>
  void for_each_list_on_rows(F&& f);

  // These are written straight into the piece's accumulators.
  void sum_rows_of_pieces(const std::vector<Half>& halves);

  // For a sum so large that its accumulators would move more memory than the rows that it adds. It has no accumulators:
  // all rows are kept, and after the barrier tasks add them, each for one part of the result.
  void sum_rows_in_parts(const Equation& psum, std::vector<Half>& halves, int published);

  // Bytes that the pieces' sums would write, all of which the combination would read again, against those of the rows.
  // Parts of fewer rows would leave the product's inner loops short.
  bool is_better_in_parts(const Equation& equation) const;

  // One sum for all; with private copies, each device then copies it.
  void lower_parts(const Equation& psum, std::vector<Half>& halves, int published, Kernel kernel);

  // ---- loops

  // A loop varies when anything that goes into it does; then all its carries must.
  void lower_loop(const Equation& equation);

  // After the body, what it yields becomes the carries. A yield that is itself a carry is copied aside first, so that
  // carries may change places.
  void append_yields(const Region& region, const std::vector<int>& carries, Loop& loop);

  [[noreturn]] void refuse_mixed_carries(const Equation& equation, Value carry) const;

  // An output that is an input which this step replaces is copied before it changes.
  void lower_outputs();

  const Program& program_;
  const PlanOptions options_;
  Lowered out_;
  std::vector<const Input*> inputs_;                     // by value
  int rows_cut_ = -1;                                    // the cut by rows, where there is one
  std::map<int, int> completed_;                         // sums over rows that other work reads, by their addends
  std::unordered_map<int, std::size_t> operand_number_;  // of the reduction at hand, by value: the first such operand
  std::set<int> summed_;                                 // values that exist only as pieces' sums
  std::shared_ptr<const Origin> origin_;                 // of the equation at hand
  std::set<int> preparatory_;                            // roots of casts of parameters that run before all pieces
  int first_ = 0;                                        // the stage before which only preparations run
  std::vector<Instruction>* loop_ = nullptr;
  ValueInfo loop_like_;
};

}  // namespace pmaptrain::cpu
