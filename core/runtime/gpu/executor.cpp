#include "core/runtime/gpu/executor.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "core/base/saturate.h"
#include "core/ops/all.h"

namespace pmaptrain::gpu {
namespace {

// A loop with more calls than this is not unrolled into a graph, because capturing a call costs microseconds and
// memory.
constexpr std::int64_t few_calls = 200;

// The name of a command for profilers: the name of the layer in the config, and the op, for example "dense_1: matmul".
std::string name_of(const Command& command) {
  const Equation* const equation = equation_of(command);
  if (equation == nullptr) return "copy";
  const std::string op(equation->op.name());
  return equation->origin == nullptr || equation->origin->scope.empty() ? op : equation->origin->scope + ": " + op;
}

// Whether several GPUs compute copies of the results, which must be equal: they differ only along axes that are not
// divided over the GPUs.
bool has_copies(const Plan& plan, const Launch& launch) {
  if (launch.equation->results.empty()) return false;
  const Mesh& grid = plan.division.grid;
  const AxisSet varying = plan.program->type(launch.equation->results.front()).varying;
  for (int axis = 0; axis < std::ssize(grid.axes()); ++axis) {
    if (grid.size(axis) > 1 && !varying.contains(axis)) return true;
  }
  return false;
}

bool must_be_deterministic(const Plan& plan, const Launch& launch) {
  return plan.deterministic || has_copies(plan, launch);
}

// Launches with equal keys share one prepared kernel.
std::string key_of(const Plan& plan, const Launch& launch) {
  std::string key(1, must_be_deterministic(plan, launch) ? '1' : '0');
  const auto append = [&](const auto& value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); };
  append_key(launch.equation->op, key);
  // A region refers to values of its program by number, so the kernel of an equation with a region is not shared.
  if (!launch.equation->regions.empty()) append(reinterpret_cast<std::uintptr_t>(launch.equation));
  append(launch.logical_devices);
  for (const auto* const types : {&launch.operand_types, &launch.result_types}) {
    append(types->size());
    for (const Type& type : *types) {
      append(type.dtype);
      append(type.shape.size());
      for (const std::int64_t size : type.shape) append(size);
    }
  }
  for (const bool stacked : launch.stacked) key += stacked ? '1' : '0';
  return key;
}

}  // namespace

std::int64_t calls_of(std::span<const Command> commands) {
  std::int64_t calls = 0;
  for (const Command& command : commands) {
    const Loop* const loop = std::get_if<Loop>(&command);
    calls += loop == nullptr ? 1 : loop->iterations * (std::ssize(loop->slices) + calls_of(loop->body));
  }
  return calls;
}

GpuRequest request_of(const Plan& plan, const Launch& launch) {
  GpuRequest request{launch.operand_types,
                     launch.result_types,
                     launch.logical_devices,
                     launch.stacked,
                     nullptr,
                     {},
                     plan.tf32,
                     must_be_deterministic(plan, launch)};
  if (launch.equation->regions.empty()) return request;
  request.region = &launch.equation->regions.front();
  request.types = plan.program->types;
  return request;
}

Executor::Executor(Device& device, const std::vector<Plan>& plans, const MemorySizes& sizes,
                   const MakeKernel& make_kernel, int gpus)
    : device_(device), plans_(plans), sizes_(sizes), gpus_(gpus) {
  prepare_kernels(make_kernel);  // comes first, because preparing a kernel may need memory for a trial run
  persistent_ = allocate(product_of(sizes.persistent, static_cast<std::size_t>(sizes.members)));
  data_ = allocate(sizes.data);
  transient_ = allocate(sizes.transient);
  staging_ = device_.pinned(staging_bytes);
  reads_ = device_.pinned(max_pending_reads * max_small_read);
  for (std::size_t e = 0; e < plans.size(); ++e) {
    constants_.push_back(allocate(plans[e].constant_bytes));
    batches_.push_back(allocate(product_of(plans[e].batch_bytes, sizes.batches[e].count())));
    copy_ranges_.push_back(copy_ranges_of(plans[e], sizes.batches[e]));
    fill_constants(e);
  }
  std::size_t scratch = 0, workspace = 0;
  for (const auto& [key, kernel] : kernels_) {
    scratch = std::max(scratch, kernel.scratch);
    workspace = std::max(workspace, kernel.prepared.workspace);
  }
  scratch_ = allocate(scratch);
  workspace_ = allocate(workspace);
  note(Loading::memory);
}

void Executor::connect(const CommunicatorIds& ids) {
  for (const Plan& plan : plans_) create_communicators(plan, ids);
  note(Loading::communicators);
  record_expected();
  if (gpus_ > 1) device_.barrier(gpus_);
  note(Loading::graphs);
}

void Executor::note(Loading what) {
  const Clock::time_point now = Clock::now();
  load_times_[static_cast<std::size_t>(what)].seconds += seconds_between(noted_at_, now);
  noted_at_ = now;
}

std::byte* Executor::allocate(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  allocated_ = sum_of(allocated_, bytes);
  return device_.allocate(bytes);
}

void Executor::fill_constants(std::size_t entry) {
  const Plan& plan = plans_[entry];
  const StepId step{entry, 0, 0};
  for (const auto& [index, equation] : plan.constants) {
    const Buffer& buffer = plan.buffer(index);
    std::vector<std::byte> value(buffer.bytes());
    const Array array{&buffer.type, value.data()};
    kernels_of(equation->op).reference(equation->op.data(), {{}, std::span(&array, 1)});
    write(step, index, 0, value);
  }
  for (const auto& [index, equation] : plan.axis_indices) {
    const Buffer& buffer = plan.buffer(index);
    for (std::int64_t slice = 0; slice < buffer.slices; ++slice) {
      const std::int64_t device = plan.division.device_of(plan.gpu, plan.first_reader_of(buffer, slice));
      const auto coordinate = static_cast<std::int32_t>(plan.program->mesh.position(device, equation->op.axes()));
      write(step, index, slice, std::as_bytes(std::span(&coordinate, 1)));
    }
  }
}

void Executor::prepare_kernels(const MakeKernel& make_kernel) {
  struct New {
    Kernel* kernel;
    const Op* op;
    GpuRequest request;
    GpuKernel commands;
  };
  std::vector<New> all;
  for (const Plan& plan : plans_) {
    for_each_of<Launch>(plan.commands, [&](const Launch& launch, double) {
      const auto [known, is_new] = kernels_.try_emplace(key_of(plan, launch));
      kernel_of_.emplace(&launch, &known->second);
      if (!is_new) return;
      const Op& op = launch.equation->op;
      const GpuRequest request = request_of(plan, launch);
      all.push_back({&known->second, &op, request, make_kernel(op, request)});
      device_.begin_preparing(op, request, all.back().commands);
    });
  }
  for (const New& each : all) {
    note(Loading::own);  // what lies between two kernels
    *each.kernel = {device_.prepare(*each.op, each.request, each.commands), each.commands.scratch_bytes};
    note(each.commands.find<GpuConv>() != nullptr        ? Loading::convolutions
         : each.commands.find<GpuAttention>() != nullptr ? Loading::attention
         : each.commands.find<GpuMatmul>() != nullptr    ? Loading::products
         : each.commands.find<GpuGenerated>() != nullptr ? Loading::generated
                                                         : Loading::own);
  }
}

void Executor::create_communicators(const Plan& plan, const CommunicatorIds& ids) {
  for_each_of<Collect>(plan.commands, [&](const Collect& collect, double) {
    const std::vector<int> ranks = ranks_of(plan.division, plan.gpu, collect.axes, collect.major);
    const auto [known, is_new] = communicators_.try_emplace(ranks);
    if (is_new) {
      const auto id = ids.find(ranks);
      known->second = device_.create_communicator(ranks, id != ids.end() ? &id->second : nullptr);
    }
    communicator_of_.emplace(&collect, known->second);
  });
}

std::byte* Executor::address(const StepId& step, Location place) const {
  const Buffer& buffer = plans_[step.entry].buffer(place.buffer);
  const auto member = static_cast<std::size_t>(step.member);
  std::byte* base = transient_;
  switch (buffer.pool) {
    case Pool::constant: base = constants_[step.entry]; break;
    case Pool::persistent: base = persistent_ + member * sizes_.persistent; break;
    case Pool::data: base = data_; break;
    case Pool::batch:
      base = batches_[step.entry] +
             sizes_.batches[step.entry].index(step.slot, step.member) * plans_[step.entry].batch_bytes;
      break;
    case Pool::transient: break;
  }
  return base + buffer.offset + place.offset;
}

void Executor::run(const StepId& step, std::int64_t steps, bool each_slot) {
  const int group = sizes_.batches[step.entry].group;
  StepGroup next{step};
  for (; steps > 0; steps -= next.count) {
    // A group of n steps on n slots begins at a slot that is a multiple of n, so that few different graphs are needed.
    next.count = 1;
    while (2 * next.count <= std::min<std::int64_t>(steps, group) &&
           (!each_slot || next.first.slot % (2 * next.count) == 0)) {
      next.count *= 2;
    }
    next.each_slot = each_slot && next.count > 1;  // a single step has the same graph with and without `each_slot`
    launch(next.first, find_or_record(next));
    record_event_after_calls();
    if (each_slot) next.first.slot += next.count;
  }
}

void Executor::record_expected() {
  const auto keep = [&](const StepGroup& steps) { steps_.emplace(steps, record(steps)); };
  for (std::size_t e = 0; e < plans_.size(); ++e) {
    const BatchLayout& batches = sizes_.batches[e];
    const bool on_one = batches.slots == 1;
    for (std::int64_t member = 0; member < sizes_.members; ++member) {
      for (int count = 1; count <= (batches.in_groups ? batches.group : 1); count *= 2) {
        for (int slot = 0; slot < batches.slots; slot += on_one ? 1 : count) {
          keep({{e, slot, member}, count, count > 1 && !on_one});
        }
      }
    }
  }
}

const std::vector<Executor::Part>& Executor::find_or_record(const StepGroup& steps) {
  if (const auto found = steps_.find(steps); found != steps_.end()) return found->second;
  between_barriers([&] { steps_.emplace(steps, record(steps)); });
  return steps_.at(steps);
}

template <class F>
void Executor::between_barriers(F&& record) {
  if (gpus_ > 1) device_.barrier(gpus_);
  record();
  if (gpus_ > 1) device_.barrier(gpus_);
}

std::vector<Executor::Part> Executor::record(const StepGroup& steps) {
  const std::vector<Command>& commands = plans_[steps.first.entry].commands;
  if (steps.count == 1) return record(steps.first, commands);
  return {{device_.capture([&] {
    StepId step = steps.first;
    for (int i = 0; i < steps.count; ++i) {
      issue(step, commands, nullptr);
      if (steps.each_slot) ++step.slot;
    }
  })}};
}

std::vector<Executor::Part> Executor::record(const StepId& step, std::span<const Command> commands) {
  std::vector<Part> parts;
  for (std::size_t first = 0, i = 0; i <= commands.size(); ++i) {
    const Loop* const loop = i < commands.size() ? std::get_if<Loop>(&commands[i]) : nullptr;
    const bool is_long = loop != nullptr && calls_of(commands.subspan(i, 1)) > few_calls;
    if (!is_long && i < commands.size()) continue;
    if (first < i) {
      parts.push_back({device_.capture([&] { issue(step, commands.subspan(first, i - first), nullptr); })});
    }
    if (is_long) parts.push_back({{}, loop, record(step, loop->body)});
    first = i + 1;
  }
  return parts;
}

void Executor::launch(const StepId& step, const std::vector<Part>& parts) {
  for (const Part& part : parts) {
    if (part.loop == nullptr) {
      replay(part.graph);
      continue;
    }
    for (std::int64_t k = 0; k < part.loop->iterations; ++k) {
      make_room_for(static_cast<int>(part.loop->slices.size()));
      for (const Loop::Slice& slice : part.loop->slices) {
        issue(step, slice.copy, static_cast<std::size_t>(k) * slice.step);
      }
      launch(step, part.body);
    }
  }
}

void Executor::replay(Graph graph) {
  for (int first = 0; first < graph.calls; first += most_calls_between_events) {
    const int count = std::min(most_calls_between_events, graph.calls - first);
    make_room_for(count);
    device_.replay_calls(graph, first, count);
  }
}

void Executor::make_room_for(int calls) {
  if (calls_since_event_ + calls > most_calls_between_events) record_event_after_calls();
  while (in_flight_.size() >= most_in_flight) {
    device_.wait(in_flight_.front());
    in_flight_.pop_front();
  }
  calls_since_event_ += calls;
}

void Executor::record_event_after_calls() {
  if (calls_since_event_ == 0) return;
  in_flight_.push_back(device_.record_event(Stream::compute));
  calls_since_event_ = 0;
}

std::vector<Executor::TimedCommand> Executor::run_timed(const StepId& step) {
  auto timed = timed_.find(step);
  if (timed == timed_.end()) {
    Stamps stamps;
    Graph graph;
    between_barriers([&] {
      graph = device_.capture([&] {
        stamp(stamps, Stream::compute);
        issue(step, plans_[step.entry].commands, &stamps);
      });
    });
    timed = timed_.emplace(step, std::pair(graph, std::move(stamps))).first;
  }
  const auto& [graph, stamps] = timed->second;
  replay(graph);
  device_.wait(device_.record_event(Stream::compute));
  in_flight_.clear();
  calls_since_event_ = 0;
  std::vector<TimedCommand> times;
  for (const Stamps::Of& of : stamps.commands) {
    times.push_back({of.command, device_.seconds_between(0, of.begin), device_.seconds_between(0, of.end)});
  }
  return times;
}

int Executor::stamp(Stamps& stamps, Stream stream) {
  device_.stamp(stream, stamps.count);
  if (stream == Stream::compute) stamps.last = stamps.count;
  return stamps.count++;
}

void Executor::issue(const StepId& step, std::span<const Command> commands, Stamps* stamps) {
  for (const Command& command : commands) {
    if (const Loop* const loop = std::get_if<Loop>(&command)) {
      for (std::int64_t k = 0; k < loop->iterations; ++k) {
        const int begin = stamps != nullptr ? stamps->last : 0;
        for (const Loop::Slice& slice : loop->slices) issue(step, slice.copy, static_cast<std::size_t>(k) * slice.step);
        if (stamps != nullptr) stamps->commands.push_back({&command, begin, stamp(*stamps, Stream::compute)});
        issue(step, loop->body, stamps);
      }
      continue;
    }
    const Stream stream = stream_of(command);
    if (stream == Stream::communicate) device_.order(Stream::compute, stream);
    int begin = 0;
    if (stamps != nullptr) begin = stream == Stream::compute ? stamps->last : stamp(*stamps, stream);
    device_.begin_range(name_of(command));
    std::visit(
        [&]<class T>(const T& known) {
          if constexpr (!std::is_same_v<T, Loop>) issue(step, known);
        },
        static_cast<const Command::variant&>(command));
    device_.end_range();
    if (stamps != nullptr) stamps->commands.push_back({&command, begin, stamp(*stamps, stream)});
  }
}

void Executor::issue(const StepId& step, const Launch& launch) {
  const Kernel& kernel = *kernel_of_.at(&launch);
  std::vector<const std::byte*> operands;
  std::vector<std::byte*> results;
  Accesses accesses;
  const auto devices = static_cast<std::size_t>(launch.logical_devices);
  for (std::size_t i = 0; i < launch.operands.size(); ++i) {
    operands.push_back(address(step, launch.operands[i]));
    accesses.reads.push_back({operands.back(), bytes(launch.operand_types[i]) * (launch.stacked[i] ? devices : 1)});
  }
  for (std::size_t i = 0; i < launch.results.size(); ++i) {
    results.push_back(address(step, launch.results[i]));
    accesses.writes.push_back({results.back(), bytes(launch.result_types[i]) * devices});
  }
  device_.launch(Stream::compute, kernel.prepared, {operands, results, scratch_, workspace_}, accesses);
}

void Executor::issue(const StepId& step, const Copy& copy, std::size_t from_offset) {
  device_.copy(copy.stream, address(step, copy.to), address(step, copy.from) + from_offset, copy.rows);
}

void Executor::issue(const StepId& step, const Reduce& reduce) {
  std::vector<Addends> all;
  all.reserve(reduce.groups.size());
  for (const Reduce::Group& group : reduce.groups) {
    all.push_back({address(step, group.to), address(step, group.from), group.elements, group.arrays});
  }
  device_.reduce(reduce.stream, reduce.kind, reduce.dtype, all, reduce.tree);
}

void Executor::issue(const StepId& step, const Collect& collect) {
  device_.collective(Stream::communicate, communicator_of_.at(&collect), collect.kind, collect.dtype,
                     address(step, collect.to), address(step, collect.from), collect.bytes);
}

void Executor::issue(const StepId&, const Await&) { device_.order(Stream::communicate, Stream::compute); }

void Executor::upload(std::size_t entry, int slot, int count, std::span<const std::int64_t> members,
                      const std::byte* host) {
  // The copies wait for the earlier steps that read the batches in these slots, not for steps on other slots.
  std::optional<Event> last;
  for (int i = slot; i < slot + count; ++i) {
    const auto released = released_.find({entry, i});
    if (released != released_.end() && (!last || last->number < released->second.number)) last = released->second;
  }
  if (last) device_.wait_event(*last, Stream::copy);
  const BatchLayout& batches = sizes_.batches[entry];
  const std::size_t bytes = plans_[entry].batch_bytes, apart = static_cast<std::size_t>(batches.members);
  for (const std::int64_t member : batches.members > 1 ? members : members.first(1)) {
    const std::size_t first = batches.index(slot, member);
    for (const CopyRange& range : copy_ranges_[entry]) {
      device_.copy(Stream::copy, batches_[entry] + first * bytes + range.to,
                   host + first * batches.host_bytes + range.from,
                   {range.bytes, static_cast<std::size_t>(count), apart * bytes, apart * batches.host_bytes});
    }
  }
  device_.order(Stream::copy, Stream::compute);
}

void Executor::release(std::size_t entry, int slot, int count) {
  const Event event = device_.record_event(Stream::compute);
  for (int i = slot; i < slot + count; ++i) released_[{entry, i}] = event;
}

std::vector<Executor::CopyRange> Executor::copy_ranges_of(const Plan& plan, const BatchLayout& batches) {
  std::vector<CopyRange> ranges;
  const auto add = [&](const CopyRange& range) {
    // Join neighbouring ranges. Less than `alignment` bytes of padding lie between two inputs; they are copied too.
    if (!ranges.empty() && range.to - ranges.back().to == range.from - ranges.back().from &&
        range.to - ranges.back().to < ranges.back().bytes + alignment) {
      ranges.back().bytes = range.to - ranges.back().to + range.bytes;
    } else {
      ranges.push_back(range);
    }
  };
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    const Buffer& buffer = plan.buffer(plan.inputs[i]);
    if (buffer.pool != Pool::batch) continue;
    const std::size_t bytes = buffer.slice_bytes();
    for (std::int64_t slice = 0; slice < buffer.slices; ++slice) {
      const std::int64_t device = plan.division.device_of(plan.gpu, plan.first_reader_of(buffer, slice));
      const std::int64_t instance = plan.program->mesh.position(device, buffer.axes) - batches.first_instances[i];
      const auto source = static_cast<std::size_t>(instance);
      add({buffer.offset + static_cast<std::size_t>(slice) * bytes, batches.host_offsets[i] + source * bytes, bytes});
    }
  }
  return ranges;
}

void Executor::write(const StepId& step, int buffer, std::int64_t slice, std::span<const std::byte> bytes,
                     std::size_t offset) {
  const std::size_t first = static_cast<std::size_t>(slice) * plans_[step.entry].buffer(buffer).slice_bytes() + offset;
  for (std::size_t at = 0; at < bytes.size(); at += staging_bytes) {
    const std::size_t size = std::min(staging_bytes, bytes.size() - at);
    std::memcpy(staging_, bytes.data() + at, size);
    device_.copy(Stream::compute, address(step, {buffer, first + at}), staging_, {size, 1, size, size});
    device_.wait(device_.record_event(Stream::compute));
  }
}

const std::byte* Executor::queue_read(const StepId& step, int buffer, std::int64_t slice, std::size_t offset,
                                      std::size_t bytes) {
  std::byte* const to = reads_ + next_read_++ % max_pending_reads * max_small_read;
  const std::size_t first = static_cast<std::size_t>(slice) * plans_[step.entry].buffer(buffer).slice_bytes() + offset;
  device_.copy(Stream::compute, to, address(step, {buffer, first}), {bytes, 1, bytes, bytes});
  return to;
}

void Executor::read(const StepId& step, int buffer, std::int64_t slice, std::size_t offset, std::span<std::byte> into) {
  const std::size_t first = static_cast<std::size_t>(slice) * plans_[step.entry].buffer(buffer).slice_bytes() + offset;
  for (std::size_t at = 0; at < into.size(); at += staging_bytes) {
    const std::size_t size = std::min(staging_bytes, into.size() - at);
    device_.copy(Stream::compute, staging_, address(step, {buffer, first + at}), {size, 1, size, size});
    device_.wait(device_.record_event(Stream::compute));
    std::memcpy(into.data() + at, staging_, size);
  }
}

}  // namespace pmaptrain::gpu
