// The interface between the GPU backend and its platforms. There is one Device for each GPU; one thread uses it, and
// calls concern this GPU alone. There are three implementations: CUDA; several virtual devices on one physical GPU; and
// an emulation on the host, which checks the memory that each call reads and writes.
//
// Calls that work on memory are asynchronous: they are queued on a stream, in order, and return at once. Only order()
// and wait_event() order the streams of a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::gpu {

enum class Stream : std::uint8_t { compute, communicate, copy };
inline constexpr int streams = 3;

// A range of device memory, or of host memory that the device has pinned.
struct Range {
  const std::byte* begin = nullptr;
  std::size_t size = 0;
};

// The memory that a call reads and writes. An emulated device refuses all other accesses; CUDA ignores this.
struct Accesses {
  std::vector<Range> reads, writes;
};

// The handle of a kernel that is ready to launch on a device.
struct Prepared {
  int number = -1;
  std::size_t workspace = 0;  // bytes that each launch needs in addition to the kernel's own scratch memory
};

// The memory arguments of a launch. The launch has exclusive use of scratch and workspace.
struct Arguments {
  std::span<const std::byte* const> operands;
  std::span<std::byte* const> results;
  std::byte* scratch = nullptr;
  std::byte* workspace = nullptr;
};

// `height` rows of `width` bytes, at distances of `to_pitch` and `from_pitch` bytes.
struct PitchedRows {
  std::size_t width = 0, height = 1, to_pitch = 0, from_pitch = 0;
};

// `count` arrays in rows of `in_a_row` arrays. Arrays in a row are `pitch` bytes apart, and rows `row_pitch` bytes.
struct Arrays {
  std::int64_t count = 1;
  std::int64_t in_a_row = 1;
  std::size_t pitch = 0, row_pitch = 0;

  // The offset of array `i` from the first one.
  std::size_t offset(std::int64_t i) const {
    return static_cast<std::size_t>(i / in_a_row) * row_pitch + static_cast<std::size_t>(i % in_a_row) * pitch;
  }
};

enum class Collective : std::uint8_t {
  all_reduce_sum,  // sums over the ranks, in an order that the library chooses
  all_gather,      // concatenates the values of the ranks, in rank order
};

// Handles of one device: its part of a communicator, a captured graph, an event.
struct Communicator {
  int number = -1;
};
struct Graph {
  int number = -1;
  int calls = 1;  // number of launches in a replay; 1 if a single launch runs the whole graph
};
struct Event {
  std::int64_t number = 0;
};

struct Properties {
  std::string name;            // "NVIDIA H200"
  int compute_capability = 0;  // 90
  std::size_t memory = 0;
  int driver = 0;          // 13000
  std::vector<int> peers;  // devices whose memory this one can access directly
};

// All functions but abort() throw Error: resource if memory is short, failed otherwise.
//
// In CUDA, allocate(), pinned(), prepare(), capture(), create_communicator() and the destructor may wait for work of
// other devices, above all if devices access each other's memory. They must not be called while a collective is in
// progress that some rank has yet to join, and no other thread may begin one meanwhile. So callers put a barrier()
// before and after them. A device is destroyed when all devices have finished their work, or have been aborted on their
// own threads.
class Device {
 public:
  virtual ~Device() = default;
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Allocates memory, 256-byte aligned, that lives as long as the device. pinned() allocates page-locked host memory,
  // which allows asynchronous copies. Neither may be called during a capture.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual std::byte* pinned(std::size_t bytes) = 0;

  // Announces that prepare() will be called with the same arguments, so that slow work such as compilation can already
  // start on background threads.
  virtual void begin_preparing(const Op&, const GpuRequest&, const GpuKernel&) {}
  // Compiles the kernel, or lets a library plan it. Must not be called during a capture.
  virtual Prepared prepare(const Op& op, const GpuRequest& request, const GpuKernel& kernel) = 0;

  virtual void launch(Stream stream, Prepared kernel, const Arguments& arguments, const Accesses& accesses) = 0;
  virtual void copy(Stream stream, std::byte* to, const std::byte* from, const PitchedRows& rows) = 0;
  // Reduces arrays of `elements` elements, in order: to[i] = ((from[0][i] + from[1][i]) + from[2][i]) + ..., or the
  // maximum or minimum.
  enum class Reduction : std::uint8_t { sum, max, min };
  virtual void reduce(Stream stream, Reduction reduce, DType dtype, std::byte* to, const std::byte* from,
                      std::int64_t elements, const Arrays& arrays) = 0;
  // Takes part in a collective; each rank passes its own memory. Reads `bytes` bytes of `from`. Writes as many to `to`,
  // or for all_gather as many for each rank.
  virtual void collective(Stream stream, Communicator communicator, Collective kind, DType dtype, std::byte* to,
                          const std::byte* from, std::size_t bytes) = 0;

  // Makes later work on `after` wait for the work that is queued on `before` now.
  virtual void order(Stream before, Stream after) = 0;

  // Records the time at which all earlier work on the stream is done, under a number from 0 on. In a graph, each replay
  // records a new time.
  virtual void stamp(Stream stream, int number) = 0;
  // The time between two stamps, both of which must be done.
  virtual double seconds_between(int from, int to) = 0;
  // For profilers: names the calls until the matching end_range().
  virtual void begin_range(const std::string& name) = 0;
  virtual void end_range() = 0;

  // Captures the calls that `record` makes on this device as a graph, without running them. The graph begins on the
  // stream `compute`; at the end, order() must join every other stream that was used into it.
  virtual Graph capture(const std::function<void()>& record) = 0;
  // Launches a graph on the stream `compute`. Each of the graph's calls takes a place in the device's queue, and blocks
  // this thread if the queue is full. replay_calls() launches only some of the calls, which must be issued in order.
  void replay(Graph graph) { replay_calls(graph, 0, graph.calls); }
  virtual void replay_calls(Graph graph, int first, int count) = 0;

  // Records an event on a stream. poll() returns whether all work before the event is done, and wait() blocks until it
  // is. Both throw errors of that work.
  virtual Event record_event(Stream stream) = 0;
  virtual bool poll(Event event) = 0;
  virtual void wait(Event event) = 0;
  // Makes later work on `stream` wait for the event. Must not be called during a capture.
  virtual void wait_event(Event event, Stream stream) = 0;

  // Creates this device's part of a communicator of `ranks`, which are devices of the platform. `key` distinguishes
  // communicators of the same ranks. Blocks until all ranks have called.
  virtual Communicator create_communicator(int key, std::span<const int> ranks) = 0;
  // Blocks the thread until the devices 0 to `devices` - 1 of the platform have called this as often as this device.
  virtual void barrier(int devices) = 0;
  // Stops running work, and work that waits for other ranks, which then fail with `reason`. May be called on any
  // thread. On the device's own thread it also destroys graphs and communicators. What other ranks wait for ends when
  // one rank, or at the latest when all ranks, have done that.
  virtual void abort(const std::string& reason) noexcept = 0;
};

// The GPUs of this machine, or their substitutes.
class Platform {
 public:
  virtual ~Platform() = default;
  virtual int devices() const = 0;
  virtual Properties properties(int device) const = 0;
  // The properties as cuDNN's JSON, for ModuleOptions::planned_for.
  virtual std::string description(int) const { return {}; }
  // Opens a device. The calling thread is the only one that may use it. The number of a device is its rank in its
  // module. Modules are numbered too: devices of several modules may use the same GPU, but barriers and communicators
  // connect only devices of one module. While a module has collectives in progress, no other module may have any, nor
  // begin or end.
  virtual std::unique_ptr<Device> open(int device, int module = 0) = 0;
};

}  // namespace pmaptrain::gpu
