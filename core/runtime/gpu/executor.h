// One GPU of a module: its memory, its kernels, and the graphs of its steps. It is created and used on the device's
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

// The kernel request of a launch. It refers to memory of both arguments.
GpuRequest request_of(const Plan& plan, const Launch& launch);

// The approximate number of device calls, with loops unrolled.
std::int64_t calls_of(std::span<const Command> commands);

// The layout of an entry's batches, the same on the host and on a GPU: ordered by slot, then by member. So the batches
// of several steps can be copied by one call.
struct Batches {
  int slots = 1;
  int group = 1;               // maximum number of steps in a graph: a power of two
  bool in_groups = false;      // whether groups are submitted: on the only slot, or with one slot for each step
  std::int64_t members = 1;    // number of members that have their own batches
  std::size_t host_bytes = 0;  // bytes of one batch of the whole mesh
  std::vector<std::size_t> host_offsets;  // offsets in a batch of the batch inputs, in the program's order

  std::size_t count() const { return static_cast<std::size_t>(slots * members); }
  std::size_t index(int slot, std::int64_t member) const {
    return static_cast<std::size_t>(slot * members + (members > 1 ? member : 0));
  }
};

// Sizes that all GPUs of a module share.
struct Layout {
  std::size_t persistent = 0;  // bytes of one member
  std::size_t data = 0;        // bytes of the inputs that all members share
  std::size_t transient = 0;   // the maximum over entries
  std::int64_t members = 1;
  std::vector<Batches> batches;  // by entry
};

// Identifies the memory that a step works on.
struct StepOf {
  std::size_t entry = 0;
  int slot = 0;
  std::int64_t member = 0;
  friend auto operator<=>(const StepOf&, const StepOf&) = default;
};

class Executor {
 public:
  // `plans` has one plan for each entry and must outlive the executor. Captures the graphs for all foreseeable calls of
  // run(). Ends with a barrier of all GPUs, so none runs a step while another one captures.
  Executor(Device& device, const std::vector<Plan>& plans, const Layout& layout, const MakeKernel& make_kernel);

  // Queues steps, as graphs of one or several steps. All steps use the batch in a slot; with `each_slot`, each step
  // uses the next slot. Blocks while the device is too far behind: by `most_in_flight` launches of graphs, or as many
  // groups of `most_calls_between_events` calls if a graph needs several launches or a loop is not unrolled. A CUDA
  // queue has 1024 places, and CUDA would block the thread if it were full.
  static constexpr std::size_t most_in_flight = 4;
  static constexpr int most_calls_between_events = 64;
  void run(const StepOf& step, std::int64_t steps, bool each_slot = false);
  // Runs one step and waits for it. Returns when each command ran, in seconds since the step began. Collectives overlap
  // with other commands. Commands in a loop appear once for each iteration.
  struct Timed {
    const Command* command;
    double begin, end;
  };
  std::vector<Timed> run_timed(const StepOf& step);

  // Uploads the batches of a member in `count` slots, from that of `step` on. `host` is the beginning of all batches in
  // pinned host memory. The copies overlap with steps on other slots. upload() is called for each member between
  // begin_uploads() and end_uploads().
  void begin_uploads(std::size_t entry, int slot, int count);
  void upload(const StepOf& step, int count, const std::byte* host);
  void end_uploads();
  // Called after the steps that read the batches in these slots have been queued.
  void release(std::size_t entry, int slot, int count);
  // Queues a copy of at most `small_read` bytes of a slice of an input or output to pinned host memory. The result is
  // valid when the device has done the copy, until `reads_ahead` more reads are queued.
  static constexpr std::size_t small_read = 4096, reads_ahead = 64;
  // The sizes of pinned host memory, through which all copies from and to the host pass.
  static constexpr std::size_t staging_bytes = std::size_t{4} << 20;
  static constexpr std::size_t pinned_bytes = staging_bytes + reads_ahead * small_read;
  const std::byte* queue_read(const StepOf& step, int buffer, std::int64_t slice, std::size_t offset,
                              std::size_t bytes);
  // Copies bytes of a slice of an input or output from or to host memory, through pinned memory. Returns when it is
  // done.
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
  void create_communicators(const Plan& plan);

  std::byte* address(const StepOf& step, Location place) const;

  // The launches of a step, in order: each is a graph of commands, or a loop with too many calls for one graph. The
  // body of such a loop is launched in each iteration.
  struct Part {
    Graph graph;
    const Loop* loop = nullptr;
    std::vector<Part> body = {};  // body of the loop
  };
  // Identifies steps that are launched together.
  struct Steps {
    StepOf first;
    int count = 1;
    bool each_slot = false;
    friend auto operator<=>(const Steps&, const Steps&) = default;
  };
  const std::vector<Part>& recorded(const Steps& steps);
  // Captures single steps on each slot, and groups of steps for submit_each(), or for submit() if there is one slot.
  void record_foreseen();
  // Runs `record` between two barriers of all GPUs, so that no other GPU runs work during the capture.
  template <class F>
  void alone(F&& record);
  std::vector<Part> record(const Steps& steps);
  std::vector<Part> record(const StepOf& step, std::span<const Command> commands);
  void launch(const StepOf& step, const std::vector<Part>& parts);
  void replay(Graph graph);
  // Called before `calls` calls are queued. Ensures that there are few events in flight, and few calls between two of
  // them.
  void queued(int calls);
  void record_queued();
  // Numbers of the stamps of each command, in call order.
  struct Stamps {
    struct Of {
      const Command* command;
      int begin, end;
    };
    int count = 0;
    int last = 0;  // number of the last stamp on the stream `compute`
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
  std::byte* persistent_ = nullptr;    // memory of all members, one after another
  std::byte* data_ = nullptr;
  std::vector<std::byte*> batches_;  // by entry
  // A range of bytes that is contiguous on the host and on the GPU, so one call can copy it. Offsets are within a
  // batch.
  struct Run {
    std::size_t to = 0, from = 0, bytes = 0;
  };
  static std::vector<Run> runs_of(const Plan& plan, const Batches& batches);
  std::vector<std::vector<Run>> runs_;  // by entry
  std::byte* transient_ = nullptr;
  std::byte* scratch_ = nullptr;
  std::byte* workspace_ = nullptr;
  std::byte* staging_ = nullptr;  // pinned host memory
  std::byte* reads_ = nullptr;    // pinned host memory: a ring buffer for small reads
  std::size_t next_read_ = 0;
  std::map<std::string, Kernel> kernels_;
  std::map<const Launch*, const Kernel*> kernel_of_;
  std::map<std::vector<int>, Communicator> communicators_;  // by ranks, since entries may have different meshes
  std::map<const Collect*, Communicator> communicator_of_;
  std::map<Steps, std::vector<Part>> steps_;
  std::deque<Event> in_flight_;                            // events after queued calls, oldest first
  int calls_since_event_ = 0;                              // number of calls since the last event
  std::map<StepOf, std::pair<Graph, Stamps>> timed_;       // graphs of single steps with stamps
  std::map<std::pair<std::size_t, int>, Event> released_;  // events after the last use of each batch, by entry and slot
};

}  // namespace pmaptrain::gpu
