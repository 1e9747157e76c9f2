// Lowering of a program to the commands of one GPU, implemented in lower*.cpp and updates.cpp. Then schedule.cpp and
// join_reductions.cpp transform the commands.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/analysis/facts.h"
#include "core/analysis/packed_sums.h"
#include "core/analysis/rows.h"
#include "core/runtime/gpu/plan.h"
#include "core/storage/storage.h"

namespace pmaptrain::gpu {

class Lowering {
 public:
  Lowering(std::shared_ptr<const Program> program, const Division& division, int gpu, const PlanOptions& options,
           Shared& shared);

  Plan run();

 private:
  const Type& type(Value value) const { return program_.type(value); }
  int buffer(Value value) const { return buffers_[static_cast<std::size_t>(value.id)]; }
  const Buffer& buffer_of(Value value) const { return plan_.buffer(buffer(value)); }
  Buffer& at(int buffer) { return plan_.buffers[static_cast<std::size_t>(buffer)]; }
  void set(Value value, int buffer) { buffers_[static_cast<std::size_t>(value.id)] = buffer; }

  // The axes over which a value that varies over `axes` has separate slices. With private copies, every logical device
  // has its own slice, except of values that are cut by rows.
  AxisSet stored(AxisSet axes) const { return options_.private_copies ? program_.mesh.all() : axes; }
  AxisSet axes_of(Value value) const;  // the axes of the slices of a local result
  // Adds a buffer with a slice for each instance along `axes`, or for each group of `span` instances.
  int add_buffer(const Type& type, AxisSet axes, Pool pool, std::int64_t span = 0);
  Location place(int buffer, std::int64_t slice = 0) const;
  void add(Command command) { commands_->push_back(std::move(command)); }
  // Copies each slice of `to` from the slice of `from` that the same devices read.
  void copy(int from, int to, const Equation* equation);
  // Copies values to the buffers of those that they replace.
  void copy_replacements(const std::vector<Replacement>& copies, const Equation* equation);

  // ---- blocks: no library call and no sum over rows crosses the boundary of a block

  // How many neighbouring instances along `axes` one call may process.
  std::int64_t most_in_a_call(AxisSet axes) const;

  // ---- equations

  void lower_input(const Input& input);
  void lower_equation(const Equation& equation);
  void lower_local(const Equation& equation);
  void lower_unpack(const Equation& equation);
  bool sums_rows(const Equation& equation) const;
  // Returns a buffer with the operand of a sum over rows in which the slices of neighbouring instances are contiguous:
  // `operand` itself if they already are, else a copy.
  int by_rows(const Equation& equation, int operand);
  void lower_loop(const Equation& equation);
  // Replaces carries at the end of a loop's body.
  void lower_yields(const Equation& equation);

  // ---- collectives

  // The slices of an operand on all GPUs that a collective reads. The slices of each GPU are contiguous.
  struct Gathered {
    int buffer = -1;
    Buffer of;  // the operand's buffer on one GPU
    std::int64_t gpus = 1;
    std::size_t offset = 0, pitch = 0;  // offset of the first GPU's part, and distance between the parts
  };
  Gathered gather(const Equation& equation, int operand);
  static std::size_t pitch_of(std::size_t bytes);
  int add_gathered(DType dtype, std::size_t pitch, std::int64_t gpus);
  // The slices of the members of a local device's group, in the order of the mesh.
  std::vector<Location> members_of(const Equation& equation, const Gathered& from, std::int64_t local_device) const;

  // Finds the buckets that only one sum over devices reads. The sum then reduces their arrays one by one, into the
  // places that these have in the bucket.
  void find_packed_sums();
  void lower_reduction(const Equation& equation);
  // Reduces over groups. Each result has one slice for each instance along its `axes`.
  std::vector<int> reduce(const Equation& equation, const std::vector<Value>& operands,
                          const std::vector<AxisSet>& axes);
  // Whether this GPU has exactly one addend for each slice of the result.
  bool is_reduced(const Equation& equation, const Gathered& from, AxisSet axes) const;
  int reduce_slices(const Equation& equation, const Gathered& from, AxisSet axes);
  // Places the buffers of each element type next to each other in one new transient buffer, in the layout of a bucket.
  // A buffer that cannot be moved (it is not transient, or already lies within another) is copied to a new one there,
  // which replaces it in `buffers`. If the equation sums no bucket, a type with a single buffer is left as it is.
  // Returns the new buffers of an equation that sums buckets: the padding in them must be zero.
  std::vector<int> lay_side_by_side(const Equation& equation, std::vector<int>& buffers);
  bool sums_buckets(const Equation& equation) const;
  // Buffers that lie side by side begin at multiples of this many bytes.
  static std::size_t unit_of(DType dtype);
  // Inserts launches before a command that set all bytes of these buffers to zero.
  void clear_before(std::size_t command, const Equation& equation, const std::vector<int>& memories);
  // The place of a buffer in the contiguous buffer that contains it, or the buffer itself.
  Location beside(int buffer) const;
  // A range of contiguous buffers that one collective transfers, and the indices of these buffers.
  struct Message {
    Location begin;
    std::size_t bytes = 0;
    std::vector<std::size_t> items;
  };
  std::vector<Message> messages_of(const Equation& equation, const std::vector<int>& buffers) const;
  void reduce_places(const Equation& equation, const std::vector<Location>& from, const Type& type, Location to);
  void lower_scatter(const Equation& equation);
  // Copies what the device at place `own` of a group gets from its members to its result.
  using Exchange = void (Lowering::*)(const Equation& equation, const CollectiveRule& rule,
                                      const std::vector<Location>& from, std::size_t own, Location to);
  void lower_exchange(const Equation& equation, Exchange exchange);
  void concatenate(const Equation& equation, const CollectiveRule& rule, const std::vector<Location>& from,
                   std::size_t own, Location to);
  void all_to_all(const Equation& equation, const CollectiveRule& rule, const std::vector<Location>& from,
                  std::size_t own, Location to);
  void permute(const Equation& equation, const CollectiveRule& rule, const std::vector<Location>& from, std::size_t own,
               Location to);
  // All zero; one for all values of a type.
  Location zeros(const Type& type);
  // The buffer of a constant that the equation computes; the equation is not part of the program.
  Location constant(const Equation& equation);
  std::int64_t position_in_group(const Equation& equation, std::int64_t local_device) const;

  // ---- the end of a step

  // Whether the new value's buffer can lie where the old one does: it is a temporary of its own with the same slices.
  bool fits_in_place(const Replacement& replacement) const;
  void lower_updates();
  void lower_outputs();

  const Program& program_;
  const PlanOptions options_;
  Shared& shared_;
  Plan plan_;
  const Facts facts_;
  const pmaptrain::RowFacts rows_;
  const Storage storage_;
  Mesh block_;                                     // mesh of the logical devices in a block
  std::int64_t span_ = 1;                          // number of instances along rows_.axes whose rows form one addend
  std::vector<int> buffers_;                       // by value
  std::map<std::int32_t, PackedSum> packed_sums_;  // see find_packed_sums()
  std::vector<Command>* commands_ = nullptr;
  const std::shared_ptr<std::deque<Equation>> added_;  // equations that are not part of the program; the plan owns them
};

// Moves collectives up to where their operands are complete, and adds awaits where their results are first used.
void schedule_collectives(Plan& plan);

// Allocates transient buffers, and places buffers that lie within others.
void place_buffers(Plan& plan);

// Joins reductions of contiguous arrays.
void join_reductions(Plan& plan);

}  // namespace pmaptrain::gpu
