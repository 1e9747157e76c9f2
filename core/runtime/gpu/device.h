// The seam between the GPU backend and what carries its work out: one Device for each GPU, used by one thread, with the
// calls of this GPU alone. There are three kinds: CUDA's, several devices on one physical GPU, and an emulation on the
// host, which checks what each call reads and writes.
//
// Calls that work on memory are queued on a stream, in order, and return at once. Two streams of a device are ordered
// by order() alone.
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

// Bytes of the memory of a device, or of the host where it was pinned by the device.
struct Range {
  const std::byte* begin = nullptr;
  std::size_t size = 0;
};

// What a call reads and writes. A device that emulates lets it touch nothing else; CUDA does not look at it.
struct Accesses {
  std::vector<Range> reads, writes;
};

// A kernel that a device has made ready: its number there.
struct Prepared {
  int number = -1;
  std::size_t workspace = 0;  // bytes that each launch of it needs besides the kernel's own scratch memory
};

// The memory of one run of a kernel. Scratch and workspace are its own while it runs.
struct Arguments {
  std::span<const std::byte* const> operands;
  std::span<std::byte* const> results;
  std::byte* scratch = nullptr;
  std::byte* workspace = nullptr;
};

// `height` rows of `width` bytes, whose beginnings are `pitch` bytes apart.
struct PitchedRows {
  std::size_t width = 0, height = 1, to_pitch = 0, from_pitch = 0;
};

// `count` arrays: `in_a_row` of them are `pitch` bytes apart, and such rows `row_pitch` bytes.
struct Arrays {
  std::int64_t count = 1;
  std::int64_t in_a_row = 1;
  std::size_t pitch = 0, row_pitch = 0;

  // Where array `i` begins, after the first one.
  std::size_t offset(std::int64_t i) const {
    return static_cast<std::size_t>(i / in_a_row) * row_pitch + static_cast<std::size_t>(i % in_a_row) * pitch;
  }
};

enum class Collective : std::uint8_t {
  all_reduce_sum,  // of the ranks' values, in an order that the library chooses
  all_gather,      // the ranks' values one after another, by rank
};

// Of one device: its part of a communicator, a captured graph, a place in a stream.
struct Communicator {
  int number = -1;
};
struct Graph {
  int number = -1;
  int calls = 1;  // that a replay makes: one where a launch runs all of it
};
struct Mark {
  std::int64_t number = 0;
};

struct Properties {
  std::string name;            // "NVIDIA H200"
  int compute_capability = 0;  // 90
  std::size_t memory = 0;
  int driver = 0;          // 13000
  std::vector<int> peers;  // devices whose memory this one reaches without the host
};

// All functions but abort() throw Error: resource where memory is short, failed for everything else.
//
// CUDA may let allocate(), pinned(), prepare(), capture(), join() and the end of a device wait for what other devices
// run, above all where they reach one another's memory. So none of them may be called while a collective is under way
// for which a rank has yet to be called, and the thread of another device must not begin one meanwhile: barrier() comes
// before them and after them. A device ends when all devices have done their work, or have been aborted on their own
// threads.
class Device {
 public:
  virtual ~Device() = default;
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Memory that the device frees at its end, 256 bytes aligned. Pinned memory is the host's, and copies to and from it
  // do not wait for the host. Not while a graph is captured.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual std::byte* pinned(std::size_t bytes) = 0;

  // Announces that prepare() will be called with the same arguments, so that slow work such as compilation can already
  // start on background threads.
  virtual void begin_preparing(const Op&, const GpuRequest&, const GpuKernel&) {}
  // Compiles what is to be compiled and lets libraries plan. Not while a graph is captured.
  virtual Prepared prepare(const Op& op, const GpuRequest& request, const GpuKernel& kernel) = 0;

  virtual void launch(Stream stream, Prepared kernel, const Arguments& arguments, const Accesses& accesses) = 0;
  virtual void copy(Stream stream, std::byte* to, const std::byte* from, const PitchedRows& rows) = 0;
  // Adds up arrays of `elements`, in order: to[i] = ((from[0][i] + from[1][i]) + from[2][i]) + ...; or the largest, or
  // the smallest of them.
  enum class Reduction : std::uint8_t { sum, max, min };
  virtual void reduce(Stream stream, Reduction reduce, DType dtype, std::byte* to, const std::byte* from,
                      std::int64_t elements, const Arrays& arrays) = 0;
  // Of all ranks of the communicator, each with its own memory: `bytes` of `from`. To the memory of `to` are written as
  // many, and of all_gather as many for each rank.
  virtual void collective(Stream stream, Communicator communicator, Collective kind, DType dtype, std::byte* to,
                          const std::byte* from, std::size_t bytes) = 0;

  // What follows in `after` begins when what is in `before` now is done.
  virtual void order(Stream before, Stream after) = 0;

  // Keeps the time at which all before it in the stream is done, under a number from 0 on. In a graph each replay keeps
  // it anew.
  virtual void stamp(Stream stream, int number) = 0;
  // From one stamp to another; both are done.
  virtual double seconds_between(int from, int to) = 0;
  // For profilers: what is called until the matching end_range() is part of `name`.
  virtual void begin_range(const std::string& name) = 0;
  virtual void end_range() = 0;

  // What `record` calls on this device becomes a graph and does not run. It begins in the stream compute, and every
  // stream that is used must be joined to that one by order() at the end.
  virtual Graph capture(const std::function<void()>& record) = 0;
  // In the stream compute. Each of the graph's calls takes a place in a queue of the device, which holds this thread
  // when it is full: some of them, in order, where not all are to be queued at once.
  void replay(Graph graph) { replay_calls(graph, 0, graph.calls); }
  virtual void replay_calls(Graph graph, int first, int count) = 0;

  // A place in a stream, and whether all before it is done. poll() and wait() throw what has failed.
  virtual Mark mark(Stream stream) = 0;
  virtual bool poll(Mark mark) = 0;
  virtual void wait(Mark mark) = 0;
  // What follows in `stream` begins when all before the mark is done. Not while a graph is captured.
  virtual void follow(Mark mark, Stream stream) = 0;

  // This device's part of the communicator of `ranks`, devices of the platform; `key` tells it from others of the same
  // ranks. Waits until all have called.
  virtual Communicator join(int key, std::span<const int> ranks) = 0;
  // Waits, on the host, until the devices 0 to `devices` - 1 of the platform have called it as often as this one.
  virtual void barrier(int devices) = 0;
  // Ends what runs and what waits for other ranks, which fails with `reason`. May be called on any thread. On the
  // device's own it also ends graphs and communicators: what other ranks wait for ends when one of them has done that,
  // at the latest when all have.
  virtual void abort(const std::string& reason) noexcept = 0;
};

// The GPUs of this machine, or what stands for them.
class Platform {
 public:
  virtual ~Platform() = default;
  virtual int devices() const = 0;
  virtual Properties properties(int device) const = 0;
  // The same as cuDNN's JSON, for ModuleOptions::planned_for.
  virtual std::string description(int) const { return {}; }
  // To be called, and the device to be used, on the thread that it belongs to. Its number is its rank among the devices
  // of a module, which is a number too: those of other modules, on the same GPUs, meet and join among themselves. Only
  // one module at a time may have collectives under way, and then no other one may begin or end.
  virtual std::unique_ptr<Device> open(int device, int module = 0) = 0;
};

}  // namespace pmaptrain::gpu
