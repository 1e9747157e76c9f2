// The commands of one GPU in a step of a program, and its memory. The plan depends only on the program, on the division
// of the mesh over GPUs, and on the number of this GPU. The plans of all GPUs have the same commands in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/saturate.h"
#include "core/graph/program.h"
#include "core/runtime/gpu/device.h"
#include "core/runtime/gpu/division.h"

namespace pmaptrain::gpu {

// The alignment of every buffer.
inline constexpr std::size_t alignment = 256;

enum class Pool : std::uint8_t {
  constant,    // memory of an entry, filled on loading
  persistent,  // memory of a member: inputs, outputs
  data,        // inputs of the group data, shared by all members
  batch,       // memory of a slot of an entry
  transient,   // temporaries; all entries and members reuse the same memory
};
inline constexpr std::size_t pools = 5;

// The contiguous slices of a value on one GPU: one slice for each instance along `axes` on this GPU. A sum over rows
// has one addend for each `span` neighbouring instances instead.
struct Buffer {
  Type type;  // type of a slice
  AxisSet axes;
  std::int64_t span = 0;
  std::int64_t slices = 1;
  Pool pool = Pool::transient;
  std::size_t offset = 0;
  int within = -1;  // during planning: the buffer that contains this one, at `offset`

  std::size_t slice_bytes() const { return pmaptrain::bytes(type); }
  std::size_t bytes() const { return product_of(static_cast<std::size_t>(slices), slice_bytes()); }
};

// A position in a buffer, in bytes.
struct Location {
  int buffer = -1;
  std::size_t offset = 0;
};

// Applies an op to a range of slices.
struct Launch {
  const Equation* equation = nullptr;
  std::vector<Type> operand_types, result_types;
  std::int64_t devices = 1;
  std::vector<bool> stacked;
  std::vector<Location> operands, results;
};

struct Copy {
  const Equation* equation = nullptr;  // null at the end of a step
  Location to, from;
  PitchedRows rows;
};

struct Reduce {
  const Equation* equation = nullptr;
  Device::Reduction kind = Device::Reduction::sum;
  Location to, from;
  Type type;  // type of each array
  Arrays arrays;
};

// Begins a collective with the GPUs that differ in position along `axes` of the grid. It overlaps with the following
// commands until the next Await.
struct Collect {
  const Equation* equation = nullptr;
  Collective kind = Collective::all_gather;
  AxisSet axes;
  DType dtype = DType::f32;
  Location to, from;
  std::size_t bytes = 0;  // bytes of one GPU
};

// Makes the following commands wait for all earlier collectives.
struct Await {
  const Equation* equation = nullptr;  // equation of the last collective
};

struct Command;

// Runs `body` `iterations` times. Before iteration k, each copy of `slices` runs, with `from` advanced by k * `step`
// bytes.
struct Loop {
  const Equation* equation = nullptr;
  std::int64_t iterations = 0;
  struct Slice {
    Copy copy;
    std::size_t step = 0;
  };
  std::vector<Slice> slices;
  std::vector<Command> body;
};

struct Command : std::variant<Launch, Copy, Reduce, Collect, Await, Loop> {
  using variant::variant;
};

// State that the plans of a module's entries share.
struct Shared {
  std::map<std::string, std::pair<AxisSet, std::size_t>, std::less<>> inputs;  // axes and offset in the pool, by name
  std::size_t persistent = 0, data = 0;                                        // bytes of these pools allocated so far
};

struct PlanOptions {
  // Whether results are independent of the number of GPUs: then sums cover the same blocks of logical devices in the
  // same order, and libraries are called with the same shapes.
  bool deterministic = true;
  bool private_copies = false;  // see Source
  // The most bytes of values that one collective reduces. Larger messages mean fewer collectives, but the first one
  // begins later. The default is that of PyTorch's DistributedDataParallel.
  std::size_t message_bytes = std::size_t{25} << 20;
  bool tf32 = false;  // see GpuRequest
};

struct Plan {
  std::shared_ptr<const Program> program;
  Division division;
  int gpu = 0;
  bool tf32 = false;  // see GpuRequest; applies to all launches
  std::vector<Buffer> buffers;
  std::vector<int> inputs, outputs;  // buffers of the program's inputs and outputs
  std::vector<Command> commands;
  std::vector<std::pair<int, const Equation*>> constants;    // buffers, and the equations whose results fill them
  std::vector<std::pair<int, const Equation*>> coordinates;  // buffers that hold axis_index
  std::shared_ptr<const std::deque<Equation>> added;         // equations that are not part of the program
  std::size_t constant_bytes = 0, batch_bytes = 0, transient_bytes = 0;

  const Buffer& buffer(int index) const { return buffers[static_cast<std::size_t>(index)]; }
  // The place of a buffer in the outermost buffer that contains it, or the buffer itself.
  Location root_of(int index) const;
  // The index of the slice that a local logical device reads.
  std::int64_t slice_of(const Buffer& buffer, std::int64_t local_device) const {
    const std::int64_t position = division.local.position(local_device, buffer.axes);
    return buffer.span > 0 ? position / buffer.span : position;
  }
  // The first local device that reads a slice.
  std::int64_t reader_of(const Buffer& buffer, std::int64_t slice) const {
    return division.local.device_at(buffer.span > 0 ? slice * buffer.span : slice, buffer.axes);
  }
};

// Makes the plan. Inputs other than batches get the places that `shared` has for them, or are added to it. Throws Error
// (usage) for a program that GPUs cannot run.
Plan make_plan(std::shared_ptr<const Program> program, const Division& division, int gpu, const PlanOptions& options,
               Shared& shared);

// Calls f(command) for each command in order. Commands of a loop's body follow the loop.
template <class F>
void for_each_command(const std::vector<Command>& commands, F&& f) {
  for (const Command& command : commands) {
    f(command);
    if (const Loop* const loop = std::get_if<Loop>(&command)) for_each_command(loop->body, f);
  }
}

// The equation that a command was lowered from; null for copies at the beginning and at the end of a step.
const Equation* equation_of(const Command& command);

// The plan as text, one command per line.
std::string to_string(const Plan& plan);

}  // namespace pmaptrain::gpu
