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
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/analysis/distribute.h"
#include "core/base/saturate.h"
#include "core/graph/program.h"
#include "core/runtime/gpu/device.h"
#include "core/runtime/gpu/division.h"

namespace pmaptrain::gpu {

// The alignment of every buffer.
inline constexpr std::size_t alignment = 256;

// Kinds of memory. Each GPU has one range of memory for `data` and one for `transient`, and several for the others.
enum class Pool : std::uint8_t {
  constant,    // one for each entry; filled on loading, and only read afterwards
  persistent,  // one for each member: inputs (parameters, state) and outputs
  data,        // examples that stay on the GPU; all members read them
  batch,       // one for each slot of an entry (and each member with its own batches): batch inputs
  transient,   // temporaries of a step; all entries and members use the same memory in turn
};

// The memory of one value on one GPU. A value that varies over `axes` has a different instance at each position along
// these axes; the buffer holds the instances of this GPU one after another, as *slices*. The result of a sum over rows
// has one slice for each `span` neighbouring instances instead, which is the sum over the rows of all of them.
struct Buffer {
  Type type;  // type of a slice
  AxisSet axes;
  std::int64_t span = 0;  // 0: not a sum over rows
  std::int64_t slices = 1;
  Pool pool = Pool::transient;
  std::size_t offset = 0;
  int container = -1;  // during planning: the buffer that contains this one at `offset`; -1 if there is none

  std::size_t slice_bytes() const { return pmaptrain::bytes(type); }
  std::size_t bytes() const { return product_of(static_cast<std::size_t>(slices), slice_bytes()); }
};

// A position in a buffer, in bytes.
struct Location {
  int buffer = -1;
  std::size_t offset = 0;
};

// Runs a kernel that applies an op to the slices of `logical_devices` neighbouring logical devices. Operand i has a
// slice for each of them if `stacked[i]` is true; otherwise it has one slice that all of them read.
struct Launch {
  const Equation* equation = nullptr;
  std::vector<Type> operand_types, result_types;  // types of one slice
  std::int64_t logical_devices = 1;
  std::vector<bool> stacked;
  std::vector<Location> operands, results;
};

// Copies and reductions that belong to a sum over GPUs run on the stream of its collectives, between them.
struct Copy {
  const Equation* equation = nullptr;  // null if the copy belongs to an update or an output of the program
  Location to, from;
  PitchedRows rows;
  Stream stream = Stream::compute;
};

// Reduces several groups of arrays at once, each to one array.
struct Reduce {
  const Equation* equation = nullptr;
  Device::Reduction kind = Device::Reduction::sum;
  DType dtype = DType::f32;
  struct Group {
    Location to, from;
    std::int64_t elements = 0;  // of each array
    SpacedArrays arrays;
  };
  std::vector<Group> groups;
  std::vector<TreeNode> tree;  // of each group
  Stream stream = Stream::compute;
};

// Begins a collective of all GPUs that differ from this one only in their positions along `axes` of the grid: its
// ranks, in the order of ranks_of(). The collective runs at the same time as the following commands, up to the next
// Await.
struct Collect {
  const Equation* equation = nullptr;
  Collective kind = Collective::all_gather;
  AxisSet axes;
  DType dtype = DType::f32;
  Location to, from;
  std::size_t bytes = 0;  // see Device::collective()
  AxisSet major = {};     // of `axes`, those by which ranks are ordered first
};

// Makes the following commands wait for all earlier collectives, and for the other commands on their stream.
struct Await {
  const Equation* equation = nullptr;  // equation of the last collective
};

struct Command;

// Runs `body` `iterations` times. Before iteration k, each copy in `slices` runs, and reads k * `step` bytes after its
// `from`: so the body finds the k-th part of an array that the loop iterates over.
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

// The pools `persistent` and `data`, in which the plans of all entries of a module place their buffers. An input with
// the same name in several entries has one place.
struct SharedPools {
  std::map<std::string, std::pair<AxisSet, std::size_t>, std::less<>> inputs;  // axes and offset in the pool, by name
  std::size_t persistent = 0, data = 0;                                        // bytes of these pools allocated so far
};

struct PlanOptions {
  // Whether results are independent of the number of GPUs: then sums cover the same blocks of logical devices in the
  // same order, and libraries are called with the same shapes.
  bool deterministic = true;
  bool private_copies = false;  // see Source::private_copies
  // The most bytes of values that one collective reduces. Larger messages mean fewer collectives, but the first one
  // begins later. The default is that of PyTorch's DistributedDataParallel.
  std::size_t message_bytes = std::size_t{25} << 20;
  // Whether GPUs exchange parts of a message, so that each adds up one part, or gather the whole message and each adds
  // up all of it: messages of at least this size are exchanged.
  std::size_t least_exchanged = least_in_parts;
  bool tf32 = false;  // see GpuRequest::tf32
  int blocks = 0;     // if deterministic: the number of blocks; 0: chosen by the mesh (see blocks_of())
};

struct Plan {
  std::shared_ptr<const Program> program;
  Division division;
  int gpu = 0;
  bool tf32 = false;          // see GpuRequest::tf32; applies to all launches
  bool deterministic = true;  // see PlanOptions
  std::vector<Buffer> buffers;
  std::vector<int> inputs, outputs;  // buffers of the program's inputs and outputs
  std::vector<Command> commands;
  std::vector<std::pair<int, const Equation*>>
      constants;  // buffers that are filled on loading, with the results of the equations
  std::vector<std::pair<int, const Equation*>> axis_indices;    // buffers for the results of the op axis_index
  std::shared_ptr<const std::deque<Equation>> added_equations;  // equations of commands that lowering adds, e.g. zeros
  std::size_t constant_bytes = 0, batch_bytes = 0, transient_bytes = 0;

  const Buffer& buffer(int index) const { return buffers[static_cast<std::size_t>(index)]; }
  // The place of a buffer in the outermost buffer that contains it; {index, 0} if none does.
  Location root_of(int index) const;
  // The index of the slice that a local logical device reads.
  std::int64_t slice_of(const Buffer& buffer, std::int64_t local_device) const {
    const std::int64_t position = division.local.position(local_device, buffer.axes);
    return buffer.span > 0 ? position / buffer.span : position;
  }
  // The first local device that reads a slice.
  std::int64_t first_reader_of(const Buffer& buffer, std::int64_t slice) const {
    return division.local.device_at(buffer.span > 0 ? slice * buffer.span : slice, buffer.axes);
  }
};

// Makes the plan of the GPU `gpu`. An input that is no batch gets the place that `shared` has for its name; if there is
// none, it is added to `shared`. Throws Error (usage) for a program that GPUs cannot run.
Plan make_plan(std::shared_ptr<const Program> program, const Division& division, int gpu, const PlanOptions& options,
               SharedPools& shared);

// The GPUs that meet in a collective of one of them: by their positions along the axes `major`, and those with equal
// ones by their positions along the other axes.
std::vector<int> ranks_of(const Division& division, int gpu, AxisSet axes, AxisSet major);

// Calls f(command), or f(command, depth, times), for each command in order: for a Loop first, then for the commands of
// its body. The command is inside `depth` loops and runs `times` times in a step.
template <class F>
void for_each_command(const std::vector<Command>& commands, F&& f, int depth = 0, double times = 1) {
  for (const Command& command : commands) {
    if constexpr (std::is_invocable_v<F&, const Command&>) {
      f(command);
    } else {
      f(command, depth, times);
    }
    const Loop* const loop = std::get_if<Loop>(&command);
    if (loop != nullptr) for_each_command(loop->body, f, depth + 1, times * static_cast<double>(loop->iterations));
  }
}

// Calls f(known, times) for each command of the kind T.
template <class T, class F>
void for_each_of(const std::vector<Command>& commands, F&& f) {
  for_each_command(commands, [&](const Command& command, int, double times) {
    if (const T* const known = std::get_if<T>(&command)) f(*known, times);
  });
}

// The stream on which a command runs; for a loop, that of the copies before an iteration.
Stream stream_of(const Command& command);

// The equation that a command was lowered from; null for a Copy that belongs to an update or an output of the program.
const Equation* equation_of(const Command& command);

// The plan as text, one command per line.
std::string to_string(const Plan& plan);

}  // namespace pmaptrain::gpu
