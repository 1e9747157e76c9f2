// The interface between the GPU backend and its platforms. There is one Device for each GPU; one thread uses it, and
// calls concern this GPU alone. There are three implementations: CUDA; several virtual devices on one physical GPU; and
// an emulation on the host, which checks the memory that each call reads and writes.
//
// Calls that work on memory are asynchronous: they are queued on a stream, in order, and return at once. Only order()
// and wait_event() order the streams of a device.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/gpu.h"
#include "core/mesh/blocks.h"
#include "core/runtime/gpu/barrier.h"

namespace pmaptrain::gpu {

enum class Stream : std::uint8_t {
  compute,      // kernels, copies within the device, and graphs
  communicate,  // collectives
  copy,         // copies of batches from the host
};
inline constexpr int stream_count = 3;

// A range of device memory, or of host memory that the device has pinned.
struct Range {
  const std::byte* begin = nullptr;
  std::size_t size = 0;
};

// The memory that a call reads and writes. An emulated device refuses all other accesses; CUDA ignores this.
struct Accesses {
  std::vector<Range> reads, writes;
};

// The handle that prepare() returns: a kernel that is ready to launch on one device.
struct PreparedKernel {
  int number = -1;
  std::size_t workspace = 0;  // bytes that each launch needs in addition to the kernel's own scratch memory
  bool own = false;           // whether GpuKernel::own runs, because a library has no engine
};

// The addresses that a launch works on. No other work uses `scratch` and `workspace` while the launch runs.
struct LaunchArguments {
  std::span<const std::byte* const> operands;
  std::span<std::byte* const> results;
  std::byte* scratch = nullptr;
  std::byte* workspace = nullptr;
};

// The value of a kernel's argument in a launch; an address as a number.
inline std::uint64_t value_of(const GpuArgument& argument, const LaunchArguments& launch) {
  const std::byte* begin = launch.scratch;
  switch (argument.kind) {
    case GpuArgument::Kind::value: return argument.value;
    case GpuArgument::Kind::operand: begin = launch.operands[argument.index]; break;
    case GpuArgument::Kind::result: begin = launch.results[argument.index]; break;
    case GpuArgument::Kind::scratch: break;
  }
  return reinterpret_cast<std::uintptr_t>(begin + argument.offset);
}

// A copy of `height` rows of `width` bytes each. Successive rows begin `from_pitch` bytes apart in the source and
// `to_pitch` bytes apart in the destination.
struct PitchedRows {
  std::size_t width = 0, height = 1, to_pitch = 0, from_pitch = 0;
};

// The places of `count` equal arrays that form a grid with `per_row` arrays in each row. Neighbours in a row begin
// `pitch` bytes apart, and successive rows begin `row_pitch` bytes apart.
struct SpacedArrays {
  std::int64_t count = 1;
  std::int64_t per_row = 1;
  std::size_t pitch = 0, row_pitch = 0;

  // The offset in bytes of array `i` from the first array.
  std::size_t offset(std::int64_t i) const {
    return static_cast<std::size_t>(i / per_row) * row_pitch + static_cast<std::size_t>(i % per_row) * pitch;
  }
  // The offset of the array that begins last.
  std::size_t end() const { return offset((count - 1) / per_row * per_row) + offset(std::min(count, per_row) - 1); }
};

// Arrays of `elements` elements, the first one at `from`, that are reduced to one. `to` may be the place of one of
// them.
struct Addends {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::int64_t elements = 0;
  SpacedArrays arrays;
};

enum class Collective : std::uint8_t {
  all_reduce_sum,      // sums over the ranks, in an order that the library chooses
  reduce_scatter_sum,  // likewise; rank i gets the i-th part of the sum
  all_gather,          // concatenates the values of the ranks, in rank order
  exchange,            // rank i gets the i-th part of the value of each rank, in rank order
};
inline constexpr std::string_view collective_names[] = {"all_reduce_sum", "reduce_scatter_sum", "all_gather",
                                                        "exchange"};
inline std::string_view to_string(Collective kind) { return collective_names[static_cast<std::size_t>(kind)]; }

// The bytes that a call reads and writes on each rank, if `bytes` is its argument; see Device::collective().
inline std::size_t bytes_read(Collective kind, std::size_t bytes, std::size_t ranks) {
  return kind == Collective::exchange || kind == Collective::reduce_scatter_sum ? bytes * ranks : bytes;
}
inline std::size_t bytes_written(Collective kind, std::size_t bytes, std::size_t ranks) {
  return kind == Collective::all_gather || kind == Collective::exchange ? bytes * ranks : bytes;
}
// The bytes that each rank sends to others. An all_reduce counts as a ring: each rank sends one part to its neighbour
// twice as often as there are other ranks.
inline std::size_t bytes_sent(Collective kind, std::size_t bytes, std::size_t ranks) {
  return kind == Collective::all_reduce_sum ? 2 * (ranks - 1) * bytes / ranks : (ranks - 1) * bytes;
}

// Handles of one device: its part of a communicator, a captured graph, an event.
struct Communicator {
  int number = -1;
};
struct Graph {
  int number = -1;
  int calls = 1;  // number of calls that replay the graph; 1 if one launch replays all of it
};
struct Event {
  std::int64_t number = 0;
};

// Neighbouring GPUs, by their numbers or by their ranks.
struct GpuRange {
  int first = 0, count = 0;
};

// Identifies a communicator whose ranks are in several processes. One of them creates it, and sends it to the others.
using CommunicatorId = std::array<std::byte, 128>;

struct Properties {
  std::string name;            // "NVIDIA H200"
  int compute_capability = 0;  // 90
  std::size_t memory = 0;
  int driver = 0;          // 13000
  std::vector<int> peers;  // devices whose memory this one can access directly
};

// Prepares kernels for one GPU. All functions throw Error (failed).
class KernelPreparer {
 public:
  virtual ~KernelPreparer() = default;
  KernelPreparer() = default;
  KernelPreparer(const KernelPreparer&) = delete;
  KernelPreparer& operator=(const KernelPreparer&) = delete;

  // Starts slow work, such as compilation, on background threads for a later call of prepare() with the same arguments.
  virtual void begin_preparing(const Op&, const GpuRequest&, const GpuKernel&) {}
  // Compiles the kernel, or lets a library plan it. Must not be called during a capture.
  virtual PreparedKernel prepare(const Op& op, const GpuRequest& request, const GpuKernel& kernel) = 0;
};

// A GPU that is described by its properties and need not exist. Its kernels cannot run.
struct DescribedGpu {
  Properties properties;
  std::unique_ptr<KernelPreparer> kernels;
};

// All functions but abort() throw Error: `resource` if memory is short, `failed` otherwise.
//
// In CUDA, allocate(), pinned(), prepare(), capture(), create_communicator() and the destructor may wait for work of
// other devices, above all if devices access each other's memory. If that work is a collective that waits for this
// device, neither ends. So callers make these calls between two calls of barrier(), and begin no collective there. A
// device may be destroyed when all devices have finished their work. After a failure some of them never do: see
// Platform::give_up().
class Device : public KernelPreparer {
 public:
  // Allocates memory, 256-byte aligned, that lives as long as the device. pinned() allocates page-locked host memory,
  // which allows asynchronous copies. Neither may be called during a capture.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual std::byte* pinned(std::size_t bytes) = 0;

  virtual void launch(Stream stream, PreparedKernel kernel, const LaunchArguments& arguments,
                      const Accesses& accesses) = 0;
  virtual void copy(Stream stream, std::byte* to, const std::byte* from, const PitchedRows& rows) = 0;
  // Reduces each of `all`, at most `most_reduced`, to the sum, maximum or minimum of its arrays. The nodes of `tree`
  // take the arrays in order. The arrays of a node are added one after another, ((a + b) + c) + ..., and the sums of
  // the nodes as the tree says (core/mesh/blocks.h). No result is where others are read or written. Kernels have at
  // most 4 KiB of parameters, which limits `most_reduced`.
  enum class Reduction : std::uint8_t { sum, max, min };
  virtual void reduce(Stream stream, Reduction reduce, DType dtype, std::span<const Addends> all,
                      std::span<const TreeNode> tree) = 0;
  static constexpr std::size_t most_reduced = 48;
  // The most nodes of a tree.
  static constexpr std::size_t most_nodes = 64;
  // Takes part in a collective; each rank passes its own memory. An all_reduce_sum reads and writes `bytes` bytes. An
  // all_gather reads `bytes` bytes and writes as many for each rank; `from` may be where this rank's are written. An
  // exchange reads and writes `bytes` bytes for each rank, and a reduce_scatter_sum reads as many and writes `bytes`.
  virtual void collective(Stream stream, Communicator communicator, Collective kind, DType dtype, std::byte* to,
                          const std::byte* from, std::size_t bytes) = 0;

  // Makes the work that is queued later on the stream `after` wait for all work that is queued on `before` by now.
  virtual void order(Stream before, Stream after) = 0;

  // Records the time at which all earlier work on the stream is done, as the timestamp `number` (0, 1, ...). In a
  // graph, each replay records a new time.
  virtual void stamp(Stream stream, int number) = 0;
  // The time between the timestamps `from` and `to`. The device must have reached both.
  virtual double seconds_between(int from, int to) = 0;
  // Gives profilers a name for the calls from here to the matching end_range().
  virtual void begin_range(const std::string& name) = 0;
  virtual void end_range() = 0;

  // Captures the calls that `record` makes on this device as a graph, without running them. The graph begins on the
  // stream `compute`. If `record` uses another stream, it must end with order(that stream, Stream::compute).
  virtual Graph capture(const std::function<void()>& record) = 0;
  // Runs a graph on the stream `compute`. Each of the `graph.calls` calls takes a place in the device's queue, and
  // blocks this thread while the queue is full. replay_calls() makes only `count` of these calls, from the call `first`
  // on; the calls of a replay must be made in order.
  void replay(Graph graph) { replay_calls(graph, 0, graph.calls); }
  virtual void replay_calls(Graph graph, int first, int count) = 0;

  // Records an event on a stream. poll() returns whether all work before the event is done; wait() blocks until it is
  // done. Both throw the error if that work has failed.
  virtual Event record_event(Stream stream) = 0;
  virtual bool poll(Event event) = 0;
  // It polls, and less often the longer it waits: a call of a platform that blocks may never return if a collective
  // waits for a rank that has failed.
  void wait(Event event) {
    const auto begin = std::chrono::steady_clock::now();
    while (!poll(event)) {
      const auto passed = std::chrono::steady_clock::now() - begin;
      std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(passed / 30, std::chrono::milliseconds(1)));
    }
  }
  // Makes later work on `stream` wait for the event. Must not be called during a capture.
  virtual void wait_event(Event event, Stream stream) = 0;

  // Creates this device's part of a communicator between the devices with these ranks. Blocks until
  // all ranks have called. If the ranks are in several processes, all of them pass the same `id`, which
  // Platform::new_communicator_id() has returned in one process; else it is null.
  virtual Communicator create_communicator(std::span<const int> ranks, const CommunicatorId* id = nullptr) = 0;
  // Blocks the thread until each of the devices 0 to `devices` - 1 of this process has called barrier() as often as
  // this device. Devices of other processes need not meet: no call of a process waits for work of theirs, except for
  // collectives, and calls that create a communicator.
  virtual void barrier(int devices) = 0;
  // Makes barrier(), wait(), poll() and later collectives fail with `reason`. May be called on any thread. A call of a
  // library that waits for another rank may go on waiting.
  virtual void abort(const std::string& reason) noexcept = 0;
  // Says which call of a library has made the device's thread wait for other ranks for longer than gpu_timeout(). Empty
  // if there is none. May be called on any thread.
  virtual std::string late_call() const { return {}; }
};

// The GPUs of this machine, or their substitutes.
class Platform {
 public:
  virtual ~Platform() = default;
  virtual int devices() const = 0;
  virtual Properties properties(int device) const = 0;
  // The properties of a device as the JSON text that cuDNN prints, for describe_gpu().
  virtual std::string description(int) const { return {}; }
  // Opens a device for use by the calling thread only. `device` is the number of a GPU. `ranks` are those of the
  // devices of this process that the module uses, in their order; a count of 0 stands for all devices. `module` is the
  // number of the caller's Module (core/runtime/backend.h): devices of several modules may use the same GPU, but
  // barriers and communicators connect only devices of one module. While one module has collectives in progress, no
  // other module may start collectives, and no module may be created or destroyed.
  virtual std::unique_ptr<Device> open(int device, int module = 0, const GpuRange& ranks = {}) = 0;
  // The identity of a new communicator of several processes. Throws Error (failed).
  virtual CommunicatorId new_communicator_id() = 0;

  // Says that a rank has failed while others may wait for it in a collective. Such a collective never ends, and freeing
  // memory of any device may wait for it. So from now on no device of this process is destroyed or opened, and the
  // process has to end without cleaning up. The first reason is kept.
  void give_up(const std::string& reason) noexcept { given_up_.set(reason); }
  std::optional<std::string> given_up() const { return given_up_.reason(); }

 private:
  Abort given_up_;
};

}  // namespace pmaptrain::gpu
