// Lowers a program to the commands of one GPU. Lowering is implemented in lower*.cpp and updates.cpp; its last steps,
// the functions at the end of this file, are in schedule.cpp and lifetimes.cpp.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/analysis/distribute.h"
#include "core/analysis/facts.h"
#include "core/analysis/packed_sums.h"
#include "core/analysis/rows.h"
#include "core/runtime/gpu/plan.h"
#include "core/storage/storage.h"

namespace pmaptrain::gpu {

// The buffers of the values for which the operands of collectives wait (optimization_barrier), by equation.
using AwaitedBuffers = std::map<const Equation*, int>;

class Lowering {
 public:
  Lowering(std::shared_ptr<const Program> program, const Division& division, int gpu, const PlanOptions& options,
           SharedPools& shared);

  Plan run();

 private:
  const Type& type(Value value) const { return program_.type(value); }
  int buffer(Value value) const { return buffers_[static_cast<std::size_t>(value.id)]; }
  const Buffer& buffer_of(Value value) const { return plan_.buffer(buffer(value)); }
  Buffer& buffer_at(int buffer) { return plan_.buffers[static_cast<std::size_t>(buffer)]; }
  void set_buffer(Value value, int buffer) { buffers_[static_cast<std::size_t>(value.id)] = buffer; }

  // The axes along which the buffer of a value has slices, if the value varies over `axes`. These are `axes`, or with
  // private copies all axes of the mesh, so that every logical device has its own slice.
  AxisSet slice_axes(AxisSet axes) const { return options_.private_copies ? program_.mesh.all() : axes; }
  // The axes along which the buffer of an equation's result has slices, if the equation does not communicate. Values
  // that consist of rows, and partial sums over rows, have no private copies.
  AxisSet result_axes(Value value) const;
  // Adds a buffer with a slice for each instance along `axes`, or for each group of `span` instances.
  int add_buffer(const Type& type, AxisSet axes, Pool pool, std::int64_t span = 0);
  Location place(int buffer, std::int64_t slice = 0) const;  // the place of a slice
  void add(Command command) { commands_->push_back(std::move(command)); }
  // Copies each slice of `to` from the slice of `from` that the same devices read.
  void copy(int from, int to, const Equation* equation);
  // Copies a buffer to a new one in the transient memory.
  int copy_aside(int buffer, const Equation* equation);
  // Copies values to the buffers of those that they replace.
  void copy_replacements(const std::vector<Replacement>& copies, const Equation* equation);

  // ---- equations

  void lower_input(const Input& input);
  void lower_equation(const Equation& equation);
  void lower_local(const Equation& equation);  // an equation that does not communicate and is no loop
  void lower_unpack(const Equation& equation);
  // Whether the equation sums its operands over rows, so that one launch can sum the rows of some instances.
  bool is_sum_over_rows(const Equation& equation) const;
  // Returns a buffer that holds the operand of a sum over rows with the slices of neighbouring instances one after
  // another: `operand` itself if it already does, else a copy.
  int with_contiguous_rows(const Equation& equation, int operand);
  // Finds bounds_. With `deterministic`, shards must not change a bit, but they do change which packs are made, and so
  // by what a sum is read. Then all sums over rows that vary over the same axes have the same bounds.
  void find_bounds();
  // Of a sum over rows: the number of neighbouring instances whose rows are summed together; else 0.
  std::int64_t span_of(Value value) const;
  void lower_loop(const Equation& equation);

  // ---- collectives

  // An operand of a collective, with the slices of all GPUs that take part: a part for each GPU, in which the slices of
  // that GPU are contiguous.
  struct GatheredSlices {
    int buffer = -1;
    Buffer of;              // describes the part of one GPU
    std::size_t pitch = 0;  // distance between the parts
  };
  // Adds an all_gather of the operand if several GPUs take part.
  GatheredSlices gather_from_gpus(const Equation& equation, int operand);
  // The distance between the parts of two GPUs in gathered memory: `bytes`, rounded up.
  static std::size_t pitch_of(std::size_t bytes);
  // The slices of all logical devices in the group of a local device, in the order of the mesh. (A group is the set of
  // devices that a collective connects.)
  std::vector<Location> slices_of_group(const Equation& equation, const GatheredSlices& from,
                                        std::int64_t local_device) const;

  // Finds the buckets that only one equation reads, a sum over devices. Lowering adds no command that packs such a
  // bucket: the sum reduces the arrays of the bucket one by one, into the places that they have in the bucket.
  void find_packed_sums();
  void lower_reduction(const Equation& equation);
  // Reduces operands over groups of logical devices. Result i has one slice for each instance along axes[i].
  std::vector<int> reduce(const Equation& equation, const std::vector<Value>& operands,
                          const std::vector<AxisSet>& axes);
  // The slices of an operand that are summed for a local device and lie in these blocks of its group, in order. All of
  // the blocks are on this GPU.
  std::vector<Location> addends(const Equation& equation, int operand, std::int64_t local_device,
                                IndexRange blocks) const;
  // The sums over the subtrees that this GPU has: own[s][i] is the sum of operand i over subtree s. A GPU that has
  // fewer subtrees than others has its last one again.
  std::vector<std::vector<int>> own_sums(const Equation& equation, const SumTree& tree,
                                         const std::vector<Value>& operands, const std::vector<AxisSet>& axes);
  // Whether the operand already is the sum of these blocks: each slice of the sum has one addend, in the same place.
  bool needs_no_reduction(const Equation& equation, int operand, AxisSet axes, IndexRange blocks) const;
  int reduce_slices(const Equation& equation, int operand, AxisSet axes, IndexRange blocks);
  // Buffers of one element type that lie one after another from `begin` on, as in a bucket. `items` are their positions
  // in the list that lay_side_by_side() gets.
  struct Neighbours {
    DType dtype = DType::f32;
    Location begin;
    std::size_t bytes = 0;
    std::vector<std::size_t> items;
  };
  // For each element type, adds a transient buffer and places the buffers of that type in it one after another. A
  // buffer that cannot be placed there (it is not transient, or another buffer already contains it) is copied to a new
  // one, which replaces it in `buffers`. An added buffer of at least options_.least_exchanged bytes consists of `parts`
  // equal parts, each of whole units (see packing_unit()). If the equation sums no bucket, a single buffer that needs
  // no parts is left alone.
  std::vector<Neighbours> lay_side_by_side(const Equation& equation, std::vector<int>& buffers, std::int64_t parts);
  bool sums_buckets(const Equation& equation) const;
  // Buffers that lay_side_by_side() places begin at multiples of this many bytes.
  static std::size_t packing_unit(DType dtype);
  // If the equation sums buckets, inserts launches that fill these buffers with zeros before all commands: the padding
  // between the arrays must be zero.
  void clear_padding(const Equation& equation, const std::vector<Neighbours>& memories);
  // The place of a buffer in the buffer that contains it; {buffer, 0} if none does.
  Location place_in_container(int buffer) const;
  // A range of memory that an all_reduce_sum transfers, and the buffers in it. `items` are their positions in the list
  // that messages_of() gets.
  struct Message {
    Location begin;
    std::size_t bytes = 0;
    std::vector<std::size_t> items;
  };
  std::vector<Message> messages_of(const Equation& equation, const std::vector<int>& buffers) const;
  // Adds up the sums that several GPUs have, which own_sums() returns, in the order of `tree`. Returns the buffers of
  // the sums; sum i has one slice for each instance along axes[i].
  std::vector<int> sum_over_gpus(const Equation& equation, const SumTree& tree, const std::vector<AxisSet>& axes,
                                 std::vector<std::vector<int>> own);
  // The same for one message: `bytes` bytes from each place in `own`, one for each subtree of this GPU. If `read` is
  // not empty, this GPU gets only its part of the sum along these axes.
  void sum_message(const Equation& equation, const SumTree& tree, DType dtype, const std::vector<Location>& own,
                   Location sum, std::size_t bytes, AxisSet read = {});
  // Reduces the arrays of type `type` in the places `from` to one array, in the order of `tree`. Copies them first if
  // they are not spaced evenly.
  void reduce_places(const Equation& equation, const std::vector<Location>& from, std::vector<TreeNode> tree,
                     const Type& type, Location to, Stream stream = Stream::compute);
  // The parts that are read of a sum, if GPUs get only their parts of it; null if they get all of it.
  const PartsRead* parts_taken_of(const Equation& sum);
  // Whether the results of a psum_scatter or all_slice on this GPU are its part of a large sum.
  bool scatters_parts(const Equation& equation) const;
  // Adds up `operands`, the operands of the equation `sum`. This GPU gets its part of the result.
  void scatter_parts(const Equation& sum, const std::vector<Value>& operands, const PartsRead& parts);
  void lower_all_slice(const Equation& equation);
  // Copies each device's own part of the array in the buffer `whole` to the result.
  void copy_own_parts(const Equation& equation, int whole);
  // An Exchange adds the copies that make one device's result of a collective. from[m] is the operand of member m of
  // the device's group, `own` is the device's position in the group, and `to` is the place of its result.
  using Exchange = void (Lowering::*)(const Equation& equation, const CollectiveRule& rule,
                                      const std::vector<Location>& from, std::size_t own, Location to);
  void lower_exchange(const Equation& equation, Exchange exchange);
  void concatenate(const Equation& equation, const CollectiveRule& rule, const std::vector<Location>& from,
                   std::size_t own, Location to);
  void all_to_all(const Equation& equation, const CollectiveRule& rule, const std::vector<Location>& from,
                  std::size_t own, Location to);
  void permute(const Equation& equation, const CollectiveRule& rule, const std::vector<Location>& from, std::size_t own,
               Location to);
  // The place of a constant of zeros. Calls with types of equal element type and shape return the same place.
  Location zeros_of(const Type& type);
  // Adds a constant to the plan, which `equation` computes on loading. The equation is not part of the program.
  Location add_constant(const Equation& equation);
  std::int64_t position_in_group(const Equation& equation, std::int64_t local_device) const;

  // ---- the end of a step

  // Whether the new value's buffer can lie where the old one does: it is a temporary of its own with the same slices.
  bool fits_in_place(const Replacement& replacement) const;
  // Replaces inputs by their updates, or carries at the end of the body of `loop`.
  void lower_replacements(const std::vector<Replacement>& replacements, const Equation* loop);
  void lower_outputs();

  const Program& program_;
  const PlanOptions options_;
  SharedPools& shared_;
  Plan plan_;
  const Facts facts_;
  const pmaptrain::RowFacts rows_;
  const StorageFacts storage_;
  const Division blocks_;                              // see blocks_of(); if not deterministic, each GPU is a block
  std::vector<AxisSet> bounds_;                        // by value: the axes that bound a sum over rows
  std::vector<int> buffers_;                           // by value: its buffer; -1 before it is lowered
  std::map<std::int32_t, int> awaited_;                // by value that waits for another one: the buffer of that
  std::map<std::int32_t, PackedSum> packed_sums_;      // see find_packed_sums()
  std::map<std::int32_t, PartsRead> parts_read_;       // by value: see parts_taken_of()
  std::vector<Command>* commands_ = nullptr;           // to which add() appends: the plan's, or those of a loop's body
  const std::shared_ptr<std::deque<Equation>> added_;  // Plan::added_equations
};

// Moves each collective up to the place where its operands are complete and what they wait for is computed, and inserts
// an Await before the first command that needs a result of one. Joins small reductions that then follow one another.
void schedule_collectives(Plan& plan, const AwaitedBuffers& awaited);

// The live range of a buffer: the positions of the first and the last command that uses it. Positions count from 1.
// Successive commands of the same equation have the same position.
struct Lifetime {
  // 0 if there is none. A buffer that is written before a loop and used in the loop lives to the end of the loop.
  int first = 0, last = 0;
  const Equation* first_equation = nullptr;  // equation of the first access
  const Equation* last_equation = nullptr;   // equation of the last access
};

// By buffer: its live range in all commands of a plan, or within some while it is made. Other accesses are left out.
std::vector<Lifetime> lifetimes_in(const std::vector<Command>& commands, const Plan& plan);

// Assigns offsets in the pool `transient` to buffers, and offsets in the pools to buffers that others contain.
void place_buffers(Plan& plan);

}  // namespace pmaptrain::gpu
