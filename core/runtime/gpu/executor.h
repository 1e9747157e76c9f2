// One GPU of a module: its memory, its kernels, and the graphs of its steps. It is made and used on the device's
// thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "core/runtime/gpu/device.h"
#include "core/runtime/gpu/plan.h"

namespace pmaptrain::gpu {

using MakeKernel = std::function<GpuKernel(const Op& op, const GpuRequest& request)>;

// What the kernel of a launch is made for; refers to both.
GpuRequest request_of(const Plan& plan, const Launch& launch);

// How many calls of the device there are, about, where loops are unrolled.
std::int64_t calls_of(std::span<const Command> commands);

// The memory of an entry's batches, on the host as on a GPU: slot by slot, in each by member. So those of several steps
// are copied together.
struct Batches {
  int slots = 1;
  int group = 1;                          // the most steps in a graph: a power of two
  bool in_groups = false;                 // groups are asked for: on the only slot, or with a slot for each step
  std::int64_t members = 1;               // that have batches of their own
  std::size_t host_bytes = 0;             // of one, for the whole mesh
  std::vector<std::size_t> host_offsets;  // in it: of the program's inputs that are batch inputs

  std::size_t count() const { return static_cast<std::size_t>(slots * members); }
  std::size_t index(int slot, std::int64_t member) const {
    return static_cast<std::size_t>(slot * members + (members > 1 ? member : 0));
  }
};

// What all GPUs of a module have in common.
struct Layout {
  std::size_t persistent = 0;  // bytes of a member
  std::size_t data = 0;        // of what all members read
  std::size_t transient = 0;   // the largest need of any entry
  std::int64_t members = 1;
  std::vector<Batches> batches;  // by entry
};

// Which memory a step works on.
struct StepOf {
  std::size_t entry = 0;
  int slot = 0;
  std::int64_t member = 0;
  friend auto operator<=>(const StepOf&, const StepOf&) = default;
};

class Executor {
 public:
  // The plans, one for each entry, outlive this. Everything that run() is likely to be asked for is recorded, and all
  // GPUs meet at the end: none of them runs a step while another one records.
  Executor(Device& device, const std::vector<Plan>& plans, const Layout& layout, const MakeKernel& make_kernel);

  // Queues steps, as graphs of one step and of several. All of them on the batch in a slot, or with `each_slot` each on
  // its own, in the slots from that one on. Waits until the device is at most `most_in_flight` launches of graphs
  // behind, or as many times `most_unmarked` calls where a graph is more than a launch or a loop is not unrolled. A
  // queue of CUDA has 1024 places, and a full one holds the thread inside of CUDA.
  static constexpr std::size_t most_in_flight = 4;
  static constexpr int most_unmarked = 64;
  void run(const StepOf& step, std::int64_t steps, bool each_slot = false);
  // Runs one step and waits for it. When each command ran, in seconds since the step began; collectives run beside the
  // others. The commands of a loop come once for each iteration.
  struct Timed {
    const Command* command;
    double begin, end;
  };
  std::vector<Timed> run_timed(const StepOf& step);

  // The batches in `count` slots from that of `step` on, of its member, from pinned memory of the host, which begins at
  // `host`. They are copied while steps on other slots run: between begin_uploads(), which is for all members, and
  // end_uploads().
  void begin_uploads(std::size_t entry, int slot, int count);
  void upload(const StepOf& step, int count, const std::byte* host);
  void end_uploads();
  // After the steps that read the batches in these slots.
  void release(std::size_t entry, int slot, int count);
  // Queues the copy of some bytes of a slice of an input or an output, at most `small_read`, to pinned memory of the
  // host. They are there when the device is done with it, until `reads_ahead` more reads were queued.
  static constexpr std::size_t small_read = 4096, reads_ahead = 64;
  // What it pins of the host's memory: what is copied from there and to there passes through it.
  static constexpr std::size_t staging_bytes = std::size_t{4} << 20;
  static constexpr std::size_t pinned_bytes = staging_bytes + reads_ahead * small_read;
  const std::byte* queue_read(const StepOf& step, int buffer, std::int64_t slice, std::size_t offset,
                              std::size_t bytes);
  // Bytes of a slice of an input or an output, from or to host memory, through pinned memory; returns when it is done.
  void write(const StepOf& step, int buffer, std::int64_t slice, std::span<const std::byte> bytes,
             std::size_t offset = 0);
  void read(const StepOf& step, int buffer, std::int64_t slice, std::size_t offset, std::span<std::byte> into);

  Device& device() { return device_; }
  const Plan& plan(std::size_t entry) const { return plans_[entry]; }
  std::size_t allocated() const { return allocated_; }

 private:
  struct Kernel {
    Prepared prepared;
    std::size_t scratch = 0;
  };

  std::byte* allocate(std::size_t bytes);
  void fill_constants(std::size_t entry);
  void prepare_kernels(const MakeKernel& make_kernel);
  void join(const Plan& plan);

  std::byte* address(const StepOf& step, Location place) const;

  // What a step launches, in order: a graph of commands, or a loop of too many calls for one, whose body is launched in
  // each iteration.
  struct Part {
    Graph graph;
    const Loop* loop = nullptr;
    std::vector<Part> body = {};  // of the loop
  };
  // Steps that are launched together.
  struct Steps {
    StepOf first;
    int count = 1;
    bool each_slot = false;
    friend auto operator<=>(const Steps&, const Steps&) = default;
  };
  const std::vector<Part>& recorded(const Steps& steps);
  // Single steps on each slot, and the groups that submit_each() or, on a single batch, submit() are called for.
  void record_foreseen();
  // Recording while other GPUs run: `record` between two barriers of all GPUs.
  template <class F>
  void alone(F&& record);
  std::vector<Part> record(const Steps& steps);
  std::vector<Part> record(const StepOf& step, std::span<const Command> commands);
  void launch(const StepOf& step, const std::vector<Part>& parts);
  void replay(Graph graph);
  // Before so many calls are queued. There are few marks on the way, and few calls between two of them.
  void queued(int calls);
  void mark_queued();
  // Numbers of stamps, by command in the order of the calls.
  struct Stamps {
    struct Of {
      const Command* command;
      int begin, end;
    };
    int count = 0;
    int last = 0;  // in the stream compute
    std::vector<Of> commands;
  };
  int stamp(Stamps& stamps, Stream stream);
  void issue(const StepOf& step, std::span<const Command> commands, Stamps* stamps);
  void issue(const StepOf& step, const Launch& launch);
  void issue(const StepOf& step, const Copy& copy) { issue(step, copy, 0); }
  void issue(const StepOf& step, const Copy& copy, std::size_t further);
  void issue(const StepOf& step, const Reduce& reduce);
  void issue(const StepOf& step, const Collect& collect);
  void issue(const StepOf& step, const Await& await);

  Device& device_;
  const std::vector<Plan>& plans_;
  const Layout layout_;
  const int gpus_;
  std::size_t allocated_ = 0;
  std::vector<std::byte*> constants_;  // by entry
  std::byte* persistent_ = nullptr;    // of all members, one after another
  std::byte* data_ = nullptr;
  std::vector<std::byte*> batches_;  // by entry
  // What is copied of a batch: bytes that follow one another on the host and on the GPU.
  struct Run {
    std::size_t to = 0, from = 0, bytes = 0;
  };
  static std::vector<Run> runs_of(const Plan& plan, const Batches& batches);
  std::vector<std::vector<Run>> runs_;  // by entry
  std::byte* transient_ = nullptr;
  std::byte* scratch_ = nullptr;
  std::byte* workspace_ = nullptr;
  std::byte* staging_ = nullptr;  // of the host, pinned
  std::byte* reads_ = nullptr;    // so, too: places for small reads, in turn
  std::size_t next_read_ = 0;
  std::map<std::string, Kernel> kernels_;
  std::map<const Launch*, const Kernel*> kernel_of_;
  std::map<std::vector<int>, Communicator> communicators_;  // by ranks: entries may have different meshes
  std::map<const Collect*, Communicator> communicator_of_;
  std::map<Steps, std::vector<Part>> steps_;
  std::deque<Mark> in_flight_;                            // after what was queued
  int unmarked_ = 0;                                      // calls since the last of them
  std::map<StepOf, std::pair<Graph, Stamps>> timed_;      // of one step, with times
  std::map<std::pair<std::size_t, int>, Mark> released_;  // by entry and slot
};

}  // namespace pmaptrain::gpu
