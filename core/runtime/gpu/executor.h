// Runs the plans of one GPU on its device: owns the device's memory, kernels and graphs. An Executor is created and
// used on the device's thread.
#pragma once

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

#include "core/base/clock.h"
#include "core/runtime/backend.h"
#include "core/runtime/gpu/device.h"
#include "core/runtime/gpu/plan.h"

namespace pmaptrain::gpu {

// By ranks: the identities of communicators of several processes.
using CommunicatorIds = std::map<std::vector<int>, CommunicatorId>;

using MakeKernel = std::function<GpuKernel(const Op& op, const GpuRequest& request)>;

// The request for the kernel of a launch. The result points into `plan` and `launch`.
GpuRequest request_of(const Plan& plan, const Launch& launch);

// The number of calls of a device that these commands make, if loops are unrolled. A command counts as one call.
std::int64_t calls_of(std::span<const Command> commands);

// How the batches of an entry lie in memory, on the host and on a GPU: one after another, ordered by slot, then by
// member. So one call can copy the batches of several steps.
struct BatchLayout {
  int slots = 1;               // a slot has room for one batch, of each member if members have their own batches
  int group = 1;               // the largest number of steps that one graph runs: a power of two
  bool in_groups = false;      // whether steps are submitted in groups: on the only slot, or on a slot for each step
  std::int64_t members = 1;    // number of members that have their own batches; 1 if all members share one
  std::size_t host_bytes = 0;  // bytes of one batch of this process
  std::vector<std::size_t> host_offsets;      // offsets in a batch of the batch inputs, in the program's order
  std::vector<std::int64_t> first_instances;  // of the batch inputs: those that this process has begin there

  std::size_t count() const { return static_cast<std::size_t>(slots * members); }
  std::size_t index(int slot, std::int64_t member) const {
    return static_cast<std::size_t>(slot * members + (members > 1 ? member : 0));
  }
};

// The sizes of memory, in bytes. They are the same on all GPUs of a module.
struct MemorySizes {
  std::size_t persistent = 0;  // of one member
  std::size_t data = 0;
  std::size_t transient = 0;         // the maximum over entries
  std::int64_t members = 1;          // number of members
  std::vector<BatchLayout> batches;  // by entry
};

// Identifies a step by what it runs (an entry) and the memory that it works on (a slot and a member).
struct StepId {
  std::size_t entry = 0;
  int slot = 0;
  std::int64_t member = 0;
  friend auto operator<=>(const StepId&, const StepId&) = default;
};

class Executor {
 public:
  // Allocates memory and prepares kernels: what may fail on one GPU alone. `plans` has one plan for each entry and must
  // outlive the executor. `gpus` is the number of GPUs of this process.
  Executor(Device& device, const std::vector<Plan>& plans, const MemorySizes& sizes, const MakeKernel& make_kernel,
           int gpus);
  // Must be called on all GPUs before the first step. Creates communicators; `ids` has the identities of those of
  // several processes. Captures the graphs that run() is expected to need, and ends with a barrier of the GPUs of this
  // process, so that none of them runs a step while another one captures.
  void connect(const CommunicatorIds& ids);

  // Queues `steps` steps, as graphs of one or several steps. All steps use the batch in `step.slot`; with `each_slot`,
  // step i uses the batch in slot `step.slot + i`.
  //
  // run() blocks while the device is too far behind. It records an event after each graph, and after
  // `most_calls_between_events` calls within a graph that takes more calls. It waits while `most_in_flight` events are
  // not done. The queue of a CUDA stream has 1024 places, and CUDA blocks the thread if it is full.
  static constexpr std::size_t most_in_flight = 4;
  static constexpr int most_calls_between_events = 64;
  void run(const StepId& step, std::int64_t steps, bool each_slot = false);
  // Runs one step, waits for it, and returns the times at which each command began and ended, in seconds since the step
  // began. A collective may overlap with other commands. A command in a loop is listed once for each iteration.
  struct TimedCommand {
    const Command* command;
    double begin, end;
  };
  std::vector<TimedCommand> run_timed(const StepId& step);

  // Copies the batches of these members to the GPU, for the `count` slots from `slot` on. `host` is the address of the
  // entry's batches in pinned host memory, in the order of BatchLayout. The copies come after the earlier steps on
  // these slots and before the later steps, and run at the same time as steps on other slots.
  void upload(std::size_t entry, int slot, int count, std::span<const std::int64_t> members, const std::byte* host);
  // Must be called when all steps that read the batches in these slots have been queued: later uploads wait for them.
  void release(std::size_t entry, int slot, int count);
  // Queues a copy of `bytes` <= max_small_read bytes of a slice of an input or output to pinned host memory, and
  // returns its address there. The bytes are valid when the device has done the copy, until `max_pending_reads` more
  // reads have been queued.
  static constexpr std::size_t max_small_read = 4096, max_pending_reads = 64;
  // The sizes of the pinned host memory of an executor: a buffer for write() and read(), and all pinned memory.
  static constexpr std::size_t staging_bytes = std::size_t{4} << 20;
  static constexpr std::size_t pinned_bytes = staging_bytes + max_pending_reads * max_small_read;
  const std::byte* queue_read(const StepId& step, int buffer, std::int64_t slice, std::size_t offset,
                              std::size_t bytes);
  // Copy bytes from host memory to a slice of an input or output, or back, through pinned memory. `offset` is the first
  // byte in the slice. Both return when the copy is done.
  void write(const StepId& step, int buffer, std::int64_t slice, std::span<const std::byte> bytes,
             std::size_t offset = 0);
  void read(const StepId& step, int buffer, std::int64_t slice, std::size_t offset, std::span<std::byte> into);

  Device& device() { return device_; }
  const Plan& plan(std::size_t entry) const { return plans_[entry]; }
  std::size_t allocated() const { return allocated_; }
  // Whether a launch of these plans runs GpuKernel::own.
  bool runs_own(const Launch& launch) const { return kernel_of_.at(&launch)->prepared.own; }
  // Seconds that the constructor and connect() took, by kinds of kernels and by what else they made. Generated kernels
  // are compiled on other threads meanwhile: theirs is the time for which the constructor waited.
  const std::vector<LoadTime>& load_times() const { return load_times_; }

 private:
  struct Kernel {
    PreparedKernel prepared;
    std::size_t scratch = 0;
  };

  // What loading spends time on.
  enum class Loading : std::uint8_t {
    convolutions,
    attention,
    products,
    generated,
    own,
    memory,
    communicators,
    graphs
  };
  // Adds the time since the last call, or since the constructor began.
  void note(Loading what);

  std::byte* allocate(std::size_t bytes);
  void fill_constants(std::size_t entry);
  void prepare_kernels(const MakeKernel& make_kernel);
  void create_communicators(const Plan& plan, const CommunicatorIds& ids);

  std::byte* address(const StepId& step, Location place) const;

  // A part of a recorded step: a graph, or a loop with too many calls for one graph. The body of such a loop consists
  // of parts too, which are launched in each iteration.
  struct Part {
    Graph graph;
    const Loop* loop = nullptr;
    std::vector<Part> body = {};  // body of the loop
  };
  // Identifies the steps that one graph runs: `count` steps from `first` on. With `each_slot`, each of them uses the
  // next slot; otherwise all use the same one.
  struct StepGroup {
    StepId first;
    int count = 1;
    bool each_slot = false;
    friend auto operator<=>(const StepGroup&, const StepGroup&) = default;
  };
  const std::vector<Part>& find_or_record(const StepGroup& steps);
  // Captures single steps on each slot, and the groups of steps that run() makes: groups on successive slots, or on the
  // only slot.
  void record_expected();
  // Runs `record` between two barriers of the GPUs of this process, because they must not run work during a capture.
  template <class F>
  void between_barriers(F&& record);
  std::vector<Part> record(const StepGroup& steps);
  std::vector<Part> record(const StepId& step, std::span<const Command> commands);
  void launch(const StepId& step, const std::vector<Part>& parts);
  void replay(Graph graph);
  // Called before `calls` calls are queued. Records an event if there would be too many calls since the last one, and
  // waits while too many events are in flight.
  void make_room_for(int calls);
  void record_event_after_calls();
  // The timestamps that a step with timing records: for each command, in order, the numbers of two.
  struct Stamps {
    struct Of {
      const Command* command;
      int begin, end;
    };
    int count = 0;  // number of timestamps
    int last = 0;   // number of the last timestamp on the stream `compute`
    std::vector<Of> commands;
  };
  int stamp(Stamps& stamps, Stream stream);  // adds a timestamp, and returns its number
  // Makes the calls of the device for commands. If `stamps` is not null, adds timestamps before and after each command.
  void issue(const StepId& step, std::span<const Command> commands, Stamps* stamps);
  void issue(const StepId& step, const Launch& launch);
  void issue(const StepId& step, const Copy& copy) { issue(step, copy, 0); }
  void issue(const StepId& step, const Copy& copy, std::size_t from_offset);
  void issue(const StepId& step, const Reduce& reduce);
  void issue(const StepId& step, const Collect& collect);
  void issue(const StepId& step, const Await& await);

  Device& device_;
  const std::vector<Plan>& plans_;
  const MemorySizes sizes_;
  const int gpus_;
  std::size_t allocated_ = 0;
  Clock::time_point noted_at_ = Clock::now();
  // By Loading.
  std::vector<LoadTime> load_times_{{"convolutions"}, {"attention"}, {"matrix_products"}, {"generated_kernels"},
                                    {"own_kernels"},  {"memory"},    {"communicators"},   {"graphs"}};
  std::vector<std::byte*> constants_;  // by entry
  std::byte* persistent_ = nullptr;    // memory of all members, one after another
  std::byte* data_ = nullptr;
  std::vector<std::byte*> batches_;  // by entry
  // A range of a batch that is contiguous on the host and on the GPU, so that one call can copy it. `from` is its
  // offset in the batch on the host, `to` its offset in the batch on the GPU.
  struct CopyRange {
    std::size_t to = 0, from = 0, bytes = 0;
  };
  static std::vector<CopyRange> copy_ranges_of(const Plan& plan, const BatchLayout& batches);
  std::vector<std::vector<CopyRange>> copy_ranges_;  // by entry
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
  std::map<StepGroup, std::vector<Part>> steps_;
  std::deque<Event> in_flight_;                       // events after queued calls, oldest first
  int calls_since_event_ = 0;                         // number of calls since the last event
  std::map<StepId, std::pair<Graph, Stamps>> timed_;  // graphs of single steps that record timestamps
  // By entry and slot: the event after the last step that reads the batches in the slot.
  std::map<std::pair<std::size_t, int>, Event> released_;
};

}  // namespace pmaptrain::gpu
