// The seam between training and hardware. A Backend loads programs into a Module, which holds their values on the
// logical devices and runs them. Training, evaluation and the command line name no backend; core/runtime/backends.h
// makes one.
//
// Work is queued: submit, write and read return a Ticket at once and are carried out in the order of the calls, at the
// latest when a ticket is waited for. Memory that was given to write or read, and the memory of a batch, belong to the
// module until the ticket of the call is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/program.h"
#include "core/runtime/trace.h"

namespace pmaptrain {

// A program of a module. Inputs of the groups params, state, hyper and data that have equal names in several entries
// are one value; their types must be equal. Batch inputs belong to their entry.
struct Entry {
  std::string name;  // "train", "evaluate"
  std::shared_ptr<const Program> program;
  int batches = 1;  // batches in memory: one may be filled while a step reads another
  // Whether each member of an ensemble has batches of its own. Otherwise all members read the same.
  bool batch_by_member = false;
  // Whether steps are submitted in groups where the module likes that: each of `batches` is then those of a group.
  bool in_groups = false;
};

struct Source {
  std::vector<Entry> entries;
  // Each logical device keeps its own copy of every value, also of replicated ones: what verify_replicas compares. The
  // results are equal bit for bit.
  bool private_copies = false;
  // The members of an ensemble. Each has its own values of params, state and hyper inputs and of outputs, and runs the
  // programs by itself: its bits are those of a module with one member. Inputs of the group data are the same for all,
  // and written for all.
  std::int64_t members = 1;
};

// A memory pool of a backend, for reports.
struct PoolReport {
  std::string name;
  std::size_t bytes = 0, copies = 1;
  std::string meaning;
};

// The bytes that a module allocates, by what they hold; and `programs`, which it is given.
struct Needs {
  std::size_t parameters = 0;   // inputs of the group params
  std::size_t state = 0;        // of the groups state and hyper
  std::size_t data = 0;         // inputs of the group data
  std::size_t batches = 0;      // batch inputs, all slots
  std::size_t gradients = 0;    // accumulators of reductions
  std::size_t temporaries = 0;  // all other values
  std::size_t kernels = 0;      // scratch memory of kernels and prepared operands
  std::size_t programs = 0;     // programs, and what is made of them before the first step
  std::size_t workspaces = 0;   // of libraries on GPUs: as planned, or the most that they may take
  std::size_t host = 0;         // of this process, beside that of GPUs; not in total()
  std::vector<PoolReport> pools;
  int gpus = 0;                              // whose memory it is, all together, each as much; 0: this process's
  std::string workspaces_planned_for;        // the GPU; empty where `workspaces` is a bound
  std::optional<std::size_t> device_memory;  // as Backend::device_memory()
  std::size_t total() const;
  // The item of an input that is kept between steps.
  std::size_t& of(Group group) { return group == Group::params ? parameters : group == Group::data ? data : state; }
};

// A value of a module: an input, or an output of an entry.
struct Handle {
  std::int32_t id = -1;
};

// What was queued. Tickets of one module count up.
struct Ticket {
  std::int64_t number = 0;
};

// All logical devices of a member, or all members, for write.
inline constexpr std::int64_t every_device = -1, every_member = -1;

// Which copy of a value: that of a logical device of a member. Devices count from 0 in each member.
struct Instance {
  Instance(std::int64_t of_device, std::int64_t of_member = 0) : device(of_device), member(of_member) {}  // NOLINT
  std::int64_t device = 0, member = 0;
};

// One instruction of an entry's plan, for reports.
struct InstructionReport {
  std::string name;                    // of the op; "copy", "loop"
  const Equation* equation = nullptr;  // null for a copy
  std::string part;                    // of the plan, the same for neighbouring rows: "stage 1 of 2, each piece"
  int depth = 0;                       // of loops around it
  std::string result;                  // "f32[16,10]"
  std::string implementation;          // "reference", the library's own name, or what the runtime does
  bool kernel = false;                 // whether an op's kernel carries it out
  // In one step, over all devices and iterations.
  double flops = 0, bytes = 0;
  double layout_bytes = 0;                  // of the library's changes of layout, which come on top
  std::vector<std::string> layout_changes;  // "operand 1"
};

// What the workers share between two of an entry's barriers, in the units of a fixed cost model.
struct StageReport {
  double total = 0;    // of one step
  double serial = 0;   // of which every worker does all
  double largest = 0;  // task, which one worker does
  std::int64_t tasks = 0;
};

// What the plan of an entry consists of.
struct PlanReport {
  std::vector<InstructionReport> instructions;
  std::vector<StageReport> stages;
  std::shared_ptr<const void> owner;  // of the equations that `instructions` point to
};

// Seconds by row of instructions(), of one step and worker on average, and of one step as a whole.
struct Profile {
  std::vector<double> seconds;
  double wall_seconds = 0;
};

class Module {
 public:
  // Throws Error (failed) when entries disagree about an input.
  explicit Module(Source source);
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const Source& source() const { return source_; }
  const Program& program(std::size_t entry) const { return *source_.entries[entry].program; }

  // Throw Error (failed) for a name that there is not. Batch inputs have no handle.
  Handle input(std::string_view name) const;
  Handle output(std::size_t entry, std::string_view name) const;
  // Of an entry's program, the input or output of this index.
  Handle input(std::size_t entry, std::size_t index) const { return input(program(entry).inputs[index].name); }
  Handle output(std::size_t entry, std::size_t index) const {
    return output(entry, program(entry).outputs[index].name);
  }
  const Type& type(Handle handle) const { return *values_[static_cast<std::size_t>(handle.id)].type; }
  std::size_t slice_bytes(Handle handle) const { return bytes(type(handle)); }

  // The memory of a batch input in slot `slot` of the entry's batches: one slice for each position along the axes that
  // its type varies over, in mesh order. Empty for a name that the program has no batch input of. May be called,
  // and the memory be filled, on another thread while steps on other slots run.
  // `member`: of an entry with batch_by_member; 0 elsewhere.
  virtual std::span<std::byte> batch(std::size_t entry, int slot, std::string_view input, std::int64_t member = 0) = 0;

  // Runs an entry `steps` times on the batch in `slot`, each step on what the one before left: for the members in
  // `members`, which ascend, or for all of them where it is empty. The others keep all their values.
  virtual Ticket submit(std::size_t entry, int slot, std::int64_t steps = 1,
                        std::span<const std::int64_t> members = {}) = 0;

  // Runs an entry once on each of the `count` batches in the slots from `slot` on, as so many calls of submit() would.
  virtual Ticket submit_each(std::size_t entry, int slot, int count, std::span<const std::int64_t> members = {});

  // How many short steps of an entry are best queued by one call: a power of two.
  virtual int group(std::size_t) const { return 1; }
  // How many groups are to be queued, for no time to be lost between them.
  virtual int steps_ahead() const { return 1; }
  // The slots of an entry.
  int slots(std::size_t entry) const {
    const Entry& of = source_.entries[entry];
    return of.in_groups && of.batches > 1 ? of.batches * group(entry) : of.batches;
  }

  // The same of one step, and what each worker does when. `trace` belongs to the module until the ticket is done.
  virtual Ticket submit_traced(std::size_t entry, int slot, std::span<const std::int64_t> members,
                               StepTrace& trace) = 0;

  // Sets an input, on one device or on all, of one member or of all: the whole of it, or where there is an `offset`,
  // its bytes from there on.
  virtual Ticket write(Handle input, Instance instance, std::span<const std::byte> value,
                       std::optional<std::size_t> offset = std::nullopt) = 0;
  // Reads the bytes from `offset` on of a device's slice: of an input what the last step left, of an output what the
  // last step of its entry computed. An output that is an input, or what replaces one, is undefined once that input is
  // written, updated by another entry, or refilled.
  virtual Ticket read(Handle value, Instance instance, std::span<std::byte> into, std::size_t offset = 0) = 0;

  // Whether a ticket's work, and all before it, is done.
  virtual bool done(Ticket ticket) = 0;
  // Returns when it is. Throws the first exception of anything up to it, and again in every later call; the module's
  // values are then undefined.
  virtual void wait(Ticket ticket) = 0;

  // Bytes of all memory that was allocated: what Needs::total() foretells.
  virtual std::size_t allocated() const = 0;

  // For reports: what an entry's plan consists of, and how long each part takes. profile() runs `steps` steps.
  virtual std::vector<InstructionReport> instructions(std::size_t entry) const = 0;
  virtual std::vector<StageReport> stages(std::size_t entry) const = 0;
  virtual Profile profile(std::size_t entry, int slot, std::int64_t steps) = 0;

 protected:
  struct ModuleValue {
    const Type* type;
    std::int32_t entry;  // of an output, or the first that has the input
    std::int32_t index;  // among that program's inputs, or outputs
    bool is_input;
  };
  // What all backends refuse: another size, a device or member that is not there, a device's or member's own value of
  // what is kept once, a part that goes past the end. Throw Error (failed).
  void check_write(Handle input, Instance instance, std::size_t size, std::optional<std::size_t> offset) const;
  void check_read(Handle value, Instance instance, std::size_t offset, std::size_t size) const;
  // What submit() runs for: these members, or all where none are named.
  std::span<const std::int64_t> members_or_all(std::span<const std::int64_t> members) const {
    return members.empty() ? std::span<const std::int64_t>(all_members_) : members;
  }
  const ModuleValue& value(Handle handle) const { return values_[static_cast<std::size_t>(handle.id)]; }

 private:
  void check_device(Handle handle, std::int64_t device) const;
  void check_member(std::int64_t member) const;

  Source source_;
  std::vector<std::int64_t> all_members_;
  std::vector<ModuleValue> values_;
  std::map<std::string_view, std::int32_t> inputs_;                // handles by name
  std::vector<std::map<std::string_view, std::int32_t>> outputs_;  // by entry
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;  // as the config has it: "cpu"
  // Whether its workers are GPUs, each with memory of its own; else they are threads.
  virtual bool uses_gpus() const { return false; }
  // How many of them a module of this source has.
  virtual int workers(const Source& source) const = 0;
  // How often the workers of an entry meet in a step.
  virtual std::int64_t barriers_per_step(const Source& source, std::size_t entry) const = 0;
  // Bytes of memory of one device where devices have their own; none for the CPU, or where no GPU is found and the
  // config names none.
  virtual std::optional<std::size_t> device_memory() const { return std::nullopt; }
  // What load() will allocate. Throws Error (usage) for a program that this backend cannot run.
  virtual Needs needs(const Source& source) const = 0;
  // What a module of this source will say of an entry, where a backend knows it without one: a GPU's plan is made on
  // any machine. Others load a module. Throws like needs() and load().
  virtual PlanReport report(Source source, std::size_t entry) const;
  // The least number of workers, above that of this backend, with which each device needs at most `bytes`; none where
  // there is no such number, or the devices share one memory.
  virtual std::optional<int> workers_that_fit(const Source& source, std::size_t bytes) const {
    (void)source, (void)bytes;
    return std::nullopt;
  }
  // Allocates memory, starts threads, makes kernels. Throws Error: usage, or resource.
  virtual std::unique_ptr<Module> load(Source source) const = 0;
};

}  // namespace pmaptrain
