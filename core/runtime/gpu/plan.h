// What one GPU does in a step of a program, and where its memory is: a function of the program, of how the mesh divides
// over GPUs, and of the number of this GPU among them. The plans of all GPUs have the same commands in the same order.
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

// Of every buffer.
inline constexpr std::size_t alignment = 256;

enum class Pool : std::uint8_t {
  constant,    // of an entry, filled when it is loaded
  persistent,  // of a member: inputs, outputs
  data,        // inputs of that group, the same for all members
  batch,       // of a slot of an entry
  transient,   // temporaries: all entries and members use the same memory in turn
};
inline constexpr std::size_t pools = 5;

// The slices of a value on one GPU, one after another: one for each instance along `axes` that the GPU has; or, of a
// sum over rows, one addend for each `span` neighbouring instances.
struct Buffer {
  Type type;  // of a slice
  AxisSet axes;
  std::int64_t span = 0;
  std::int64_t slices = 1;
  Pool pool = Pool::transient;
  std::size_t offset = 0;
  int within = -1;  // until the plan is made: the buffer of which this is the part from `offset` on

  std::size_t slice_bytes() const { return pmaptrain::bytes(type); }
  std::size_t bytes() const { return product_of(static_cast<std::size_t>(slices), slice_bytes()); }
};

// A byte of a buffer.
struct Location {
  int buffer = -1;
  std::size_t offset = 0;
};

// An op on a run of slices.
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
  Type type;  // of an array
  Arrays arrays;
};

// Begins a collective with the GPUs that have another position along `axes` of the grid. It runs beside the commands
// that follow, up to the next Await.
struct Collect {
  const Equation* equation = nullptr;
  Collective kind = Collective::all_gather;
  AxisSet axes;
  DType dtype = DType::f32;
  Location to, from;
  std::size_t bytes = 0;  // of one GPU
};

// The commands that follow begin when all collectives before it are done.
struct Await {
  const Equation* equation = nullptr;  // of the last of them
};

struct Command;

// `body`, `iterations` times. Before iteration k come `slices`, from `step` bytes times k further on.
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

// What the plans of a module's entries share.
struct Shared {
  std::map<std::string, std::pair<AxisSet, std::size_t>, std::less<>> inputs;  // axes and offset in their pool
  std::size_t persistent = 0, data = 0;                                        // bytes so far, of these pools
};

struct PlanOptions {
  // The bits do not depend on the number of GPUs: sums go over the same blocks of logical devices in the same order,
  // and libraries are called for the same shapes.
  bool deterministic = true;
  bool private_copies = false;  // as in Source
  // What one collective takes of the values that are reduced together: the larger, the fewer collectives, and the later
  // the first one begins. As in PyTorch's DistributedDataParallel.
  std::size_t bucket_bytes = std::size_t{25} << 20;
  bool tf32 = false;  // as in GpuRequest
};

struct Plan {
  std::shared_ptr<const Program> program;
  Division division;
  int gpu = 0;
  bool tf32 = false;  // as in GpuRequest, of all launches
  std::vector<Buffer> buffers;
  std::vector<int> inputs, outputs;  // buffers of the program's inputs and outputs
  std::vector<Command> commands;
  std::vector<std::pair<int, const Equation*>> constants;    // by buffer: what fills it
  std::vector<std::pair<int, const Equation*>> coordinates;  // of axis_index
  std::shared_ptr<const std::deque<Equation>> added;         // equations that the program does not have
  std::size_t constant_bytes = 0, batch_bytes = 0, transient_bytes = 0;

  const Buffer& buffer(int index) const { return buffers[static_cast<std::size_t>(index)]; }
  // Where a buffer is in the one that it is a part of, or itself.
  Location root_of(int index) const;
  // The slice of a buffer that a local logical device reads.
  std::int64_t slice_of(const Buffer& buffer, std::int64_t local_device) const {
    const std::int64_t position = division.local.position(local_device, buffer.axes);
    return buffer.span > 0 ? position / buffer.span : position;
  }
  // The first local device that reads a slice.
  std::int64_t reader_of(const Buffer& buffer, std::int64_t slice) const {
    return division.local.device_at(buffer.span > 0 ? slice * buffer.span : slice, buffer.axes);
  }
};

// Inputs that are no batches and that `shared` has are where they are there; others are added to it.
// Throws Error (usage) for a program that GPUs cannot run.
Plan make_plan(std::shared_ptr<const Program> program, const Division& division, int gpu, const PlanOptions& options,
               Shared& shared);

// Calls f(command) for each command in order, those of a loop after it.
template <class F>
void for_each_command(const std::vector<Command>& commands, F&& f) {
  for (const Command& command : commands) {
    f(command);
    if (const Loop* const loop = std::get_if<Loop>(&command)) for_each_command(loop->body, f);
  }
}

// The equation that a command belongs to; null for copies at the beginning and at the end of a step.
const Equation* equation_of(const Command& command);

// As text, a line for each command.
std::string to_string(const Plan& plan);

}  // namespace pmaptrain::gpu
