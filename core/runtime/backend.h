// The interface between training and hardware. A Backend plans programs. The plan (Planned) says what they need, and is
// loaded as a Module, which holds their values on the logical devices and runs them. Training, evaluation and the
// command line never name a backend; core/runtime/backends.h creates one.
//
// Calls are asynchronous: submit, write and read return a Ticket at once. The work is done in the order of the calls,
// at the latest when a ticket is waited for. The memory passed to write or read, and the memory of a batch, must not be
// touched until the ticket of that call is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/analysis/distribute.h"
#include "core/graph/program.h"
#include "core/mesh/member_share.h"
#include "core/runtime/trace.h"
#include "core/runtime/transport.h"

namespace pmaptrain {

// A program of a module. Inputs in the groups params, state, hyper and data that have the same name in several entries
// are one value, so their types and their parts must be equal. A batch input belongs to its entry alone.
struct Entry {
  std::string name;  // "train", "evaluate"
  std::shared_ptr<const Program> program;
  int batches = 1;  // number of batches in memory: one can be filled while a step reads another
  // Whether each member of an ensemble has its own batches. Otherwise all members read the same ones.
  bool batch_by_member = false;
  // Whether the caller submits steps in groups of Module::steps_per_group() steps. Then there is memory for `batches`
  // groups of batches.
  bool in_groups = false;
  // If positive: the work of a step by which a backend decides into how many pieces it cuts the rows, in place of the
  // work of `program`. Results depend on the pieces. So a program with sharded parameters, or that computes activations
  // again, is cut like the program without, whose results it has.
  double work = 0;
};

// What a backend loads as one module: programs, and how their values are kept.
struct Source {
  std::vector<Entry> entries;
  // Whether each logical device has its own copy of every value, even of replicated ones ("private copies"). The config
  // key verify_replicas needs them: it compares the copies. Results do not depend on this option.
  bool private_copies = false;
  // The number of members of an ensemble. Each member has its own params, state and hyper inputs and its own outputs,
  // and its results equal those of a module with one member, bit for bit. All members share the inputs of the group
  // data.
  std::int64_t members = 1;
  // The number of blocks in which sums over devices are added (core/mesh/blocks.h). Results depend on it.
  std::int64_t blocks = 1;
};

// One memory pool of a backend, for reports.
struct PoolReport {
  std::string name;
  std::size_t bytes = 0, copies = 1;  // `bytes` is the size of one copy
  std::string meaning;
};

// Bytes by purpose: the one list of what memory is for.
struct MemoryBytes {
  std::size_t parameters = 0;   // inputs of the groups params and params_state
  std::size_t optimizer = 0;    // inputs of the groups state and hyper
  std::size_t gradients = 0;    // memory in which reductions collect their addends
  std::size_t activations = 0;  // all other values
  std::size_t batches = 0;      // batch inputs, in all slots
  std::size_t data = 0;         // inputs of the group data
  std::size_t kernels = 0;      // scratch memory of kernels, and prepared operands
  std::size_t programs = 0;     // programs, and everything derived from them before the first step
  std::size_t snapshot = 0;     // for checkpoints, which are written while training goes on
  std::size_t workspace = 0;    // of GPU libraries: the planned size, or an upper bound
  std::size_t total() const;
};
inline constexpr std::size_t MemoryBytes::*purposes[] = {
    &MemoryBytes::parameters, &MemoryBytes::optimizer, &MemoryBytes::gradients, &MemoryBytes::activations,
    &MemoryBytes::batches,    &MemoryBytes::data,      &MemoryBytes::kernels,   &MemoryBytes::programs,
    &MemoryBytes::snapshot,   &MemoryBytes::workspace};
static_assert(sizeof(purposes) / sizeof(purposes[0]) * sizeof(std::size_t) == sizeof(MemoryBytes));

// What a module allocates. `programs` is also counted here, though the caller allocates it.
struct MemoryNeeds : MemoryBytes {
  std::size_t host = 0;  // host memory of this process when the rest is GPU memory; not part of total()
  std::size_t code = 0;  // that libraries generate for CPUs, and allocate themselves; not part of total()
  std::vector<PoolReport> pools;
  // If positive, the sizes are sums over this many GPUs, which need equal amounts. 0: the sizes are host memory.
  int gpus = 0;
  bool is_divided = false;                   // whether processes have different parts of parameters or state
  std::string workspace_planned_for;         // a GPU model; empty if `workspace` is an upper bound
  std::optional<std::size_t> device_memory;  // see Backend::device_memory()
  // The field that counts inputs of `group`, which must not be `batch`.
  std::size_t& of(Group group) { return is_of_model(group) ? parameters : group == Group::data ? data : optimizer; }
};

// A value of a module: an input, a part of an input that is a bucket, or an output of an entry.
struct Handle {
  std::int32_t id = -1;
};

// Identifies queued work. The tickets of a module are numbered in ascending order.
struct Ticket {
  std::int64_t number = 0;
};

// For write(): all logical devices of a member, or all members.
inline constexpr std::int64_t every_device = -1, every_member = -1;

// A logical device of a member of an ensemble: selects one copy of a value. Each member numbers its devices from 0.
struct DeviceOfMember {
  // NOLINTNEXTLINE
  DeviceOfMember(std::int64_t of_device, std::int64_t of_member = 0) : device(of_device), member(of_member) {}
  std::int64_t device = 0, member = 0;
};

// One instruction of an entry's plan, for reports.
struct InstructionReport {
  std::string name;                    // name of the op, or "copy", "loop"
  const Equation* equation = nullptr;  // null for a copy
  std::string section;                 // the heading of this and neighbouring rows: "stage 1 of 2, each piece"
  int depth = 0;                       // number of enclosing loops
  std::string result;                  // "f32[16,10]"
  // "reference", the name that the library gives, or a description of what the runtime does
  std::string implementation;
  bool kernel = false;           // whether a kernel of the op does the work
  bool on_tensor_cores = false;  // whether it multiplies on those of a GPU
  // Totals of one step, over all devices and iterations.
  double flops = 0, bytes = 0;
  double layout_bytes = 0;                  // bytes moved when the library changes layouts; not part of `bytes`
  std::vector<std::string> layout_changes;  // "operand 1"
};

// The work of one stage, that is, between two barriers of an entry. Work is the number of floating-point operations
// plus bytes (core/analysis/cost.h).
struct StageReport {
  double total = 0;         // work of one step
  double serial = 0;        // the part of `total` that every worker repeats
  double largest_task = 0;  // a task is run by one worker
  std::int64_t tasks = 0;
};

// The plan of an entry, for reports.
struct PlanReport {
  std::vector<InstructionReport> instructions;
  std::vector<StageReport> stages;
  std::size_t sent_bytes = 0;                        // in messages of this process to others, in a step
  std::shared_ptr<const Program> program = nullptr;  // as it is planned
  // What this process, or its first GPU, does for the collectives of the program, each time.
  std::map<const Equation*, std::vector<RankStep>> rank_steps = {};
};

// What loading a module took time for.
struct LoadTime {
  std::string what;
  double seconds = 0;
};

// Measured seconds of one step.
struct Profile {
  std::vector<double> seconds;  // for each row of Module::instructions(): the average over the workers
  double wall_seconds = 0;
};

class Module {
 public:
  // Throws Error (failed) if two entries give an input different types.
  explicit Module(Source source, Processes processes = {}, bool divides_members = false);
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const Source& source() const { return source_; }
  const Processes& processes() const { return processes_; }
  // What this process has of the ensemble. A call for a member that it has not changes nothing here.
  const MemberShare& member_share() const { return member_share_; }
  // What this process has of the mesh of an entry. Its processes are those that have the same members.
  Share share(std::size_t entry) const {
    return Share(program(entry).mesh, source_.blocks, member_share_.within_group());
  }
  // A device of this process, for reads of values that are equal on all devices.
  std::int64_t own_device() const { return share(0).devices().first; }
  const Program& program(std::size_t entry) const { return *source_.entries[entry].program; }

  // The inputs of an entry's program. For an input that is a bucket, its parts instead.
  std::span<const Variable> variables(std::size_t entry) const { return variables_[entry]; }

  // Throw Error (failed) if no input, no part of one, or no output has this name. Batch inputs have no handle.
  Handle input(std::string_view name) const;
  Handle output(std::size_t entry, std::string_view name) const;
  // The same, by the index in variables(entry), or among the outputs of the entry's program.
  Handle input(std::size_t entry, std::size_t index) const { return input(variables_[entry][index].name); }
  Handle output(std::size_t entry, std::size_t index) const {
    return output(entry, program(entry).outputs[index].name);
  }
  const Type& type(Handle handle) const { return values_[static_cast<std::size_t>(handle.id)].type; }
  std::size_t slice_bytes(Handle handle) const { return bytes(type(handle)); }

  // Whether this process has the instance of a value that a device holds (Share::instances). Every process has
  // replicated values.
  bool has(Handle handle, std::int64_t device) const;

  // The memory of a batch input in slot `slot`: one slice for each instance along the axes that its type varies over
  // that this process has, in mesh order. Empty if the program has no batch input of this name. Another thread may call
  // this and fill the memory while steps run on other slots. `member` selects the batch of a member in an entry with
  // batch_by_member; else it is 0.
  virtual std::span<std::byte> batch(std::size_t entry, int slot, std::string_view input, std::int64_t member = 0) = 0;

  // Runs an entry `steps` times on the batch in `slot`; each step continues from the values that the previous one left.
  // `members`, in ascending order, selects the members that run; empty means all. Other members keep their values.
  // A process runs those that it has.
  virtual Ticket submit(std::size_t entry, int slot, std::int64_t steps = 1,
                        std::span<const std::int64_t> members = {}) = 0;

  // Runs an entry once on each of the `count` batches in the slots from `slot` on, like `count` calls of submit().
  virtual Ticket submit_each(std::size_t entry, int slot, int count, std::span<const std::int64_t> members = {});

  // How many steps of an entry a caller should submit by one call: a power of two. It is more than 1 if
  // steps are so short that the calls would take longer.
  virtual int steps_per_group(std::size_t) const { return 1; }
  // The number of such groups of steps that should be queued, so that the hardware never idles between them.
  virtual int groups_ahead() const { return 1; }
  // The number of slots of an entry; each holds one batch.
  int slots(std::size_t entry) const {
    const Entry& of = source_.entries[entry];
    return of.in_groups && of.batches > 1 ? of.batches * steps_per_group(entry) : of.batches;
  }

  // Like submit() for one step, and records in `trace` what each worker does when. The module may write to `trace`
  // until the ticket is done.
  virtual Ticket submit_traced(std::size_t entry, int slot, std::span<const std::int64_t> members,
                               StepTrace& trace) = 0;

  // Sets an input, or a part of one, on one device or all devices that this process has, of one member or all members.
  // Without `offset`, `value` is the whole input; with it, `value` replaces the bytes from `offset` on. Of an
  // array that devices divide, each of the device's group gets its part, and the call returns when all have theirs.
  Ticket write(Handle input, DeviceOfMember to, std::span<const std::byte> value,
               std::optional<std::size_t> offset = std::nullopt);
  // Sets an input of a member, on all devices that this process has, to what `make` writes into memory of its size, and
  // waits for this. Throws what `make` throws; the input is then undefined. On a CPU the memory is the module's own, so
  // the value is held once; an array that devices divide is made in other memory.
  void fill(Handle input, std::int64_t member, const std::function<void(std::span<std::byte>)>& make);
  // Sets an input to zero, on all devices that this process has and for all members, and waits for this.
  void clear(Handle input);
  // Reads bytes from `offset` on of a device's slice: of an input as the last step left it, or of an output as the last
  // step of its entry computed it. An output that is also an input, or the new value of one, becomes undefined when
  // that input is written, updated by another entry, or refilled. An array that devices divide is read from the parts
  // of the device's group. If processes have different members, or different parts of the value (is_divided()), all of
  // them must make the same call, but for the device, and the bytes are there when it returns: in all processes, or in
  // process `to` alone. Of a member that other processes have, the first of them reads its device; of different parts,
  // those at position 0 of axes that do not divide the value are read.
  Ticket read(Handle value, DeviceOfMember from, std::span<std::byte> into, std::size_t offset = 0,
              std::optional<int> to = std::nullopt);
  // Reads a value of a member of this process for itself: only processes that have the member make the call, and one
  // alone may, unless is_sharded().
  Ticket read_here(Handle value, DeviceOfMember from, std::span<std::byte> into, std::size_t offset = 0);
  // Whether processes have different parts of a variable.
  bool is_sharded(Handle value) const;
  // Whether read() of the value is a call of all processes.
  bool is_divided(Handle value) const { return !member_share_.is_whole() || is_sharded(value); }
  // The input that has a variable, whose slices are the local arrays of devices. Returns other handles unchanged.
  Handle stored(Handle value) const {
    return this->value(value).stored < 0 ? value : Handle{this->value(value).stored};
  }

  // Reads all instances of a value of a member, in their order, and returns when that is done; of a value that devices
  // do not divide. Every process must call it, because the processes exchange their instances.
  void read_every_instance(Handle value, std::int64_t member, std::span<std::byte> into);
  // The same for a member of this process: only processes that have it make the call.
  void read_every_instance_here(Handle value, std::int64_t member, std::span<std::byte> into);
  // Gives all processes, or process `to` alone, what those that have a member know of it: `bytes` has as many bytes for
  // each of `members`. All processes must call it. If they have different members, it is one exchange, whatever the
  // number of members.
  void share_of_members(std::span<const std::int64_t> members, std::span<std::byte> bytes,
                        std::optional<int> to = std::nullopt);

  // Whether the work of a ticket and of all earlier tickets is done.
  virtual bool done(Ticket ticket) = 0;
  // Returns when done(ticket). Throws the first exception of this or earlier work, and throws it again in every later
  // call; the values of the module are then undefined.
  virtual void wait(Ticket ticket) = 0;

  // The number of workers, and how many barriers each of them passes in a step of an entry.
  virtual int workers() const = 0;
  virtual std::int64_t barriers_per_step(std::size_t entry) const = 0;

  // The bytes of all memory that the module has allocated, which MemoryNeeds::total() predicts.
  virtual std::size_t allocated() const = 0;

  // For reports: the plan of an entry, and the measured time of each instruction. profile() runs `steps` steps.
  virtual std::vector<InstructionReport> instructions(std::size_t entry) const = 0;
  virtual std::vector<StageReport> stages(std::size_t entry) const = 0;
  virtual Profile profile(std::size_t entry, int slot, std::int64_t steps) = 0;
  // For reports: the times of loading, by what they were spent on. A backend that loads at once has none.
  virtual std::vector<LoadTime> load_times() const { return {}; }

 protected:
  struct ModuleValue {
    Type type;
    std::int32_t entry;  // the output's entry, or the first entry that has the input
    std::int32_t index;  // index among the inputs or the outputs of that program
    bool is_input;
    std::size_t begin = 0;       // for a part of an input that is not divided: its byte offset in the input
    std::int32_t stored = -1;    // for a variable: the handle of its input
    std::int32_t variable = -1;  // for one of which devices have parts: which of the variables of the entry
  };
  // write(), fill(), clear() and read() of values of which each device has a slice.
  virtual Ticket write_slices(Handle input, DeviceOfMember to, std::span<const std::byte> value,
                              std::optional<std::size_t> offset) = 0;
  virtual void fill_slices(Handle input, std::int64_t member, const std::function<void(std::span<std::byte>)>& make);
  virtual void clear_slices(Handle input);
  virtual Ticket read_slice(Handle value, DeviceOfMember from, std::span<std::byte> into, std::size_t offset) = 0;

  // read() and write() begin with these. They throw Error (failed), and the module stays as it was, for a wrong size, a
  // device or member that is not there, one copy of a value that is stored once, or a range past the end.
  void check_write(Handle input, DeviceOfMember instance, std::size_t size, std::optional<std::size_t> offset) const;
  void check_read(Handle value, DeviceOfMember instance, std::size_t offset, std::size_t size) const;
  // The members that a call of submit() runs in this process: of the given ones, or of all if none are given, those
  // that it has.
  std::span<const std::int64_t> members_or_all(std::span<const std::int64_t> members) const;
  const ModuleValue& value(Handle handle) const { return values_[static_cast<std::size_t>(handle.id)]; }

 private:
  std::string name_of(Handle input) const;
  const Mesh& mesh_of(Handle handle) const { return program(static_cast<std::size_t>(value(handle).entry)).mesh; }
  // A StridedCopy in bytes.
  struct LocalCopy {
    std::int64_t device;
    std::size_t local, logical, run, times, stride, local_stride;
    std::size_t bytes() const { return (times - 1) * local_stride + run; }
    // From a range of the variable to the runs as a local array has them, with zeros between, and back.
    void gather(std::span<const std::byte> range, std::span<std::byte> runs) const;
    void scatter(std::span<const std::byte> runs, std::span<std::byte> range) const;
  };
  // Where devices have a range of a variable.
  std::vector<LocalCopy> local_copies(Handle variable, std::size_t offset, std::size_t bytes) const;
  // Whether devices have parts of a variable.
  bool has_parts(Handle handle) const { return value(handle).variable >= 0; }
  const Variable& variable_of(Handle handle) const;
  void add_input(std::size_t entry, std::size_t index);
  void add_variable(std::size_t entry, std::size_t index);
  // Throws Error (failed) if an entry gives a value that an entry before has, too, another type or another place.
  void check_same(std::string_view name, std::int32_t id, const Type& type, std::size_t entry, bool same_place) const;
  // Where processes have parts of the value, `to` is one of those of the member, counted from the first of them.
  Ticket read_in_group(Handle value, DeviceOfMember from, std::span<std::byte> into, std::size_t offset,
                       std::optional<int> to);
  void check_device(Handle handle, std::int64_t device) const;
  void check_member(std::int64_t member) const;

  Source source_;
  Processes processes_;
  MemberShare member_share_;
  std::vector<std::vector<Variable>> variables_;  // by entry
  std::vector<std::int64_t> own_members_;
  std::vector<ModuleValue> values_;
  std::map<std::string_view, std::int32_t> stored_, inputs_;       // handles of inputs, and of variables, by name
  std::vector<std::map<std::string_view, std::int32_t>> outputs_;  // handles by name, for each entry
};

// The plans of a source's entries. What commands print and check before the first step comes from this object, and so
// does the module that runs. Used by one thread at a time.
class Planned {
 public:
  explicit Planned(Source source) : source_(std::move(source)), reports_(source_.entries.size()) {}
  virtual ~Planned() = default;
  Planned(const Planned&) = delete;
  Planned& operator=(const Planned&) = delete;

  const Source& source() const { return source_; }
  // The number of workers of the module.
  virtual int workers() const = 0;
  // How many barriers each worker passes in a step of an entry.
  virtual std::int64_t barriers_per_step(std::size_t entry) const = 0;
  // The bytes that the first GPU sends to others in a step of an entry, by the axes of what it sends them for. Empty if
  // the workers are threads.
  virtual std::vector<std::pair<AxisSet, double>> sent_along(std::size_t entry) const {
    (void)entry;
    return {};
  }
  // The memory that load() will allocate. Computed by the first call, which creates kernels to learn their scratch
  // memory, and throws Error (usage) for an op that the backend cannot run.
  const MemoryNeeds& needs() const;
  // The report of an entry, computed by the first call. Its rows point to equations of this object.
  const PlanReport& report(std::size_t entry) const;
  // Allocates memory, starts threads and creates kernels. Throws Error: usage, or resource. The module takes over the
  // plans: afterwards this object can only be destroyed.
  virtual std::unique_ptr<Module> load() && = 0;

 protected:
  virtual MemoryNeeds compute_needs() const = 0;
  virtual PlanReport make_report(std::size_t entry) const = 0;
  Source take_source() { return std::move(source_); }

 private:
  Source source_;
  mutable std::optional<MemoryNeeds> needs_;
  mutable std::vector<std::optional<PlanReport>> reports_;  // by entry
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;  // the backend's name in a config: "cpu"
  // Whether the workers are GPUs, each with its own memory. Otherwise they are threads.
  virtual bool uses_gpus() const { return false; }
  // The bytes of memory of one GPU. Empty if the workers are threads, or if no GPU is found and the config states no
  // memory.
  virtual std::optional<std::size_t> device_memory() const { return std::nullopt; }
  // Plans every entry once. A GPU's plan is made without a GPU. Throws Error (usage) for programs that this backend
  // cannot run, and for several processes if it runs programs in one process only.
  virtual std::unique_ptr<Planned> plan(Source source, Processes processes) const = 0;
  std::unique_ptr<Planned> plan(Source source) const { return plan(std::move(source), {}); }
  // The smallest number of GPUs of each process, greater than the present one, among which the mesh can be divided so
  // that each needs at most `bytes` of memory. Empty if there is none, or if the workers are threads, which share one
  // memory. Plans the entries for each number that it tries.
  virtual std::optional<int> fewest_workers_that_fit(const Source& source, const Processes& processes,
                                                     std::size_t bytes) const {
    (void)source, (void)processes, (void)bytes;
    return std::nullopt;
  }
  // Plans and loads, for callers that ask nothing of the plan.
  std::unique_ptr<Module> load(Source source) const { return std::move(*plan(std::move(source))).load(); }

 protected:
  // Throws Error (usage) if there are several processes.
  void refuse_several(const Processes& processes) const;
};

}  // namespace pmaptrain
