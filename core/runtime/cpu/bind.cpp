#include "core/runtime/cpu/bind.h"

#include <algorithm>
#include <cassert>

#include "core/base/saturate.h"
#include "core/ops/scatter_add/rows_of_sum.h"

namespace pmaptrain::cpu {
namespace {

using pmaptrain::to_string;

std::string text_of(const Type& type) { return std::string(to_string(type.dtype)) + to_string(type.shape); }

// A text that is equal for requests that the same kernel serves. `region` is the region_number() of request.region.
std::string key_of(const Op& op, const CpuRequest& request, int region) {
  std::string key = to_string(op) + "|" + std::to_string(request.devices);
  const auto add = [&](const Type& type) { key += "|" + text_of(type); };
  for (std::size_t i = 0; i < request.operands.size(); ++i) {
    add(request.operands[i]);
    if (request.stacked[i]) key += "*";
    if (request.packed == i) key += "packed";
    if (request.columns && request.columns->operand == i) key += " of " + std::to_string(request.columns->of);
  }
  for (const Type& type : request.results) add(type);
  for (const auto& [operand, result] : request.shared) {
    key += "|" + std::to_string(operand) + "=" + std::to_string(result);
  }
  if (request.region != nullptr) key += "|region " + std::to_string(region);
  return key;
}

// A text that is equal for regions that compute the same. Values are numbered in it, beginning with the parameters.
std::string text_of(const Region& region, const Program& program) {
  std::map<Value, std::size_t> numbers;
  std::string text;
  const auto define = [&](Value value) {
    numbers.emplace(value, numbers.size());
    text += text_of(program.type(value)) + " ";
  };
  const auto use = [&](Value value) { text += std::to_string(numbers.at(value)) + " "; };
  for (const Value param : region.params) define(param);
  for (const Equation& equation : region.equations) {
    text += "; " + to_string(equation.op) + " ";
    for (const Value operand : equation.operands) use(operand);
    for (const Value result : equation.results) define(result);
  }
  text += "; yield ";
  for (const Value result : region.results) use(result);
  return text;
}

// The position of item `index` among `count` items, from 0 to 1 (see Task).
double relative_position(std::size_t index, std::size_t count) {
  return (static_cast<double>(index) + 0.5) / static_cast<double>(count);
}

std::span<const Instruction> instructions_of(const ChunkList& chunked) { return chunked.instructions; }
std::span<const Instruction> instructions_of(const Instruction& task) { return {&task, 1}; }
std::span<const Instruction> instructions_of(const PieceList& list) { return list.instructions; }

InstanceRange instances_of(const Extent& extent) {
  if (extent.kind == Extent::Kind::chunk) return {extent.axes, extent.instance, extent.axes.empty() ? 0 : 1};
  if (extent.kind != Extent::Kind::piece || extent.axes.empty()) return {};
  if (extent.rows_per_instance == 0) return {extent.axes, extent.first, extent.count};
  const std::int64_t last = (extent.first + extent.count - 1) / extent.rows_per_instance;
  return {extent.axes, extent.instance, last - extent.instance + 1};
}

std::size_t bytes_of_row(const Type& type) { return bytes(type) / count_of(type.shape.front()); }

}  // namespace

BoundPlan::BoundPlan(const Plan& plan, const KernelFactory& kernels, Transport* transport, int first_process)
    : plan_(plan),
      share_(plan.share()),
      kernel_factory_(kernels),
      transport_(transport),
      first_process_(first_process) {
  use_one_thread_in_libraries();
  for (const auto& [buffer, reader] : readers_of_packed(plan)) {
    KernelRequest request = request_of(plan, *reader.kernel, first_piece_of(plan, reader));
    const Op& op = reader.kernel->equation->op;
    preparations_[buffer] = make_preparation(op, request.get(), kernel_factory_.choice);
  }
  stages_.resize(plan.stages.size());
  for (std::size_t i = 0; i < plan.stages.size(); ++i) bind(plan.stages[i], stages_[i]);
  for (BoundStage& stage : stages_) shrink(stage.every_worker);
  for (CommandList& list : task_lists_) shrink(list);
}

std::size_t BoundPlan::command_bytes() const {
  std::size_t bytes = 0;
  for (const BoundStage& stage : stages_) bytes += bytes_of(stage.every_worker) + stage.tasks.size() * sizeof(Task);
  for (const CommandList& list : task_lists_) bytes += bytes_of(list);
  return bytes;
}

std::size_t BoundPlan::scratch_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [key, kernel] : kernels_) {
    if (kernel) bytes = std::max(bytes, kernel->scratch_bytes());
  }
  for (const auto& [buffer, preparation] : preparations_) bytes = std::max(bytes, preparation->scratch_bytes());
  return round_up(bytes, alignment);
}

std::string BoundPlan::shapes() const {
  std::string text;
  for (const auto& [key, kernel] : kernels_) text += key + " " + kernel->implementation() + "\n";
  return text;
}

// ---- lists

void BoundPlan::bind(const Stage& stage, BoundStage& bound) {
  const Extent whole;
  bind(stage.every_worker, {whole, bound.every_worker}, bound.every_worker.commands);
  for (const ChunkList& chunked : stage.chunk_lists) bind_tasks(chunked, bound);
  for (const Instruction& task : stage.tasks) bind_tasks(task, bound);
  for (const PieceList& list : stage.piece_lists) bind_tasks(list, bound);
  // The first tasks of a worker are a range of these (worker.cpp). In sorted order, this range is in every stage and
  // every step the same fraction of the pieces and of the chunks of each array, so its data stays in the caches of the
  // worker.
  std::stable_sort(bound.tasks.begin(), bound.tasks.end(),
                   [](const Task& a, const Task& b) { return a.relative_position < b.relative_position; });
  const auto same = [](const Command& a, const Command& b) { return a.instruction == b.instruction; };
  for (std::size_t i = 1; i < bound.tasks.size(); ++i) {
    const std::vector<Command>&one = bound.tasks[i - 1].list->commands, &other = bound.tasks[i].list->commands;
    bound.tasks[i].like_previous = bound.tasks[i - 1].of_piece && bound.tasks[i].of_piece &&
                                   std::equal(one.begin(), one.end(), other.begin(), other.end(), same);
  }
}

template <class Of>
void BoundPlan::bind_tasks(const Of& of, BoundStage& bound) {
  const std::vector<Extent> extents = extents_of(plan_, of);
  for (std::size_t i = 0; i < extents.size(); ++i) {
    CommandList& list = task_lists_.emplace_back();
    list.instances = instances_of(extents[i]);
    bind(instructions_of(of), {extents[i], list}, list.commands);
    bound.tasks.push_back({&list, relative_position(i, extents.size()), extents[i].kind == Extent::Kind::piece});
  }
}

void BoundPlan::bind(std::span<const Instruction> instructions, Binding to, std::vector<Command>& into) {
  // Most instructions that write an array inside a bucket do nothing for a given chunk of the bucket.
  if (to.extent.kind != Extent::Kind::chunk) into.reserve(into.size() + instructions.size());
  for (const Instruction& instruction : instructions) {
    const std::optional<Extent> own = extent_in_bucket(instruction, to.extent);
    if (own) visit([&](const auto& i) { bind(i, instruction, {*own, to.list}, into); }, instruction);
  }
}

std::optional<Extent> BoundPlan::extent_in_bucket(const Instruction& instruction, const Extent& extent) const {
  if (extent.kind != Extent::Kind::chunk) return extent;
  const auto* const combine = instruction.as<ReduceCombine>();
  const auto* const copy = instruction.as<Copy>();
  if (combine == nullptr && copy == nullptr) return extent;
  const Buffer& written = buffer(combine != nullptr ? combine->result : copy->to);
  Extent own = extent;
  if (written.bucket_elements == extent.chunked_elements && written.elements != extent.chunked_elements) {
    own.first = std::max(extent.first, written.bucket_begin) - written.bucket_begin;
    own.count = std::min(extent.first + extent.count - written.bucket_begin, written.elements) - own.first;
    own.chunked_elements = written.elements;
  }
  if (combine != nullptr && combine->step == ReduceCombine::Step::tree) {
    const IndexRange range = combine->ranks->own;
    const std::int64_t end = std::min(own.first + own.count, range.first + range.count - written.bucket_begin);
    own.first = std::max(own.first, range.first - written.bucket_begin);
    own.count = end - own.first;
  }
  return own.count > 0 ? std::optional(own) : std::nullopt;
}

// ---- addresses

Address BoundPlan::address(int index, const Extent& extent, bool rows) const {
  const Buffer& b = buffer(index);
  Address address{base_of(b), b.offset};
  if (b.pool == Pool::arena || b.pool == Pool::piece) return address;
  assert(b.layout != Layout::packed || b.axes.empty());  // a packed operand is shared by all devices
  if (b.pieces > 0) {
    address.offset += extent.piece * b.slice_bytes();
    return address;
  }
  if (rows) {
    const std::int64_t slice = slice_index(plan_, b, extent, extent.instance) - first_instance(b.axes);
    const std::int64_t row = extent.first - extent.instance * extent.rows_per_instance;
    address.offset +=
        count_of(slice) * b.slice_bytes() + count_of(row) * (b.slice_bytes() / count_of(extent.rows_per_instance));
    return address;
  }
  if (b.contributions == 0) {
    const std::int64_t slice = slice_index(plan_, b, extent, extent.instance) - first_instance(b.axes);
    address.offset += count_of(slice) * b.slice_bytes();
  }
  // `first` counts elements of the array that is cut into chunks. A value with one element for each of its rows has
  // fewer: `of_each` is the length of a row. All chunks read the same element of a scalar.
  if (extent.kind == Extent::Kind::chunk) {
    const std::int64_t of_each =
        b.elements >= extent.chunked_elements ? 1 : extent.chunked_elements / std::max<std::int64_t>(1, b.elements);
    address.offset += count_of(extent.first / of_each) * size_of(b.dtype);
  }
  return address;
}

std::int64_t BoundPlan::first_instance(AxisSet axes) const {
  if (share_.is_whole()) return 0;
  const auto [known, is_new] = first_instances_.try_emplace(axes.bits());
  if (is_new) known->second = share_.instances(axes).first;
  return known->second;
}

Address BoundPlan::slice_of_device(int index, std::int64_t device) const {
  const Buffer& b = buffer(index);
  const std::int64_t slice = plan_.program->mesh.position(device, b.axes) - first_instance(b.axes);
  return {base_of(b), b.offset + count_of(slice) * b.slice_bytes()};
}

Address BoundPlan::accumulator_address(int index, std::size_t piece, const Extent& extent) const {
  const Accumulator& a = plan_.accumulators[count_of(index)];
  Address address{Base::accumulators, a.offset + piece * a.piece_stride};
  if (extent.kind == Extent::Kind::chunk) address.offset += count_of(extent.first) * size_of(a.dtype);
  return address;
}

int BoundPlan::region_number(const Region& region) {
  const auto [known, is_new] = region_numbers_.try_emplace(&region);
  if (is_new) {
    const int next = static_cast<int>(region_texts_.size());
    known->second = region_texts_.try_emplace(text_of(region, *plan_.program), next).first->second;
  }
  return known->second;
}

CpuKernel* BoundPlan::find_or_make_kernel(const Op& op, const CpuRequest& request) {
  const int region = request.region != nullptr ? region_number(*request.region) : 0;
  const auto [found, is_new] = kernels_.try_emplace(key_of(op, request, region));
  if (is_new) {
    found->second =
        kernel_factory_.make ? kernel_factory_.make(op, request) : make_cpu_kernel(op, request, kernel_factory_.choice);
  }
  return found->second.get();
}

CpuKernel* BoundPlan::find_or_make_rows_of_sum(const ProductInParts& parts, const Type& indices, const Type& result,
                                               std::int64_t first, const IndexRange& instances) {
  const std::vector<std::int64_t> addends = rows_of_pieces(plan_, axes_of_rows(plan_, parts), instances);
  std::string key =
      to_string(parts.equation->op) + "|" + text_of(indices) + "|" + text_of(result) + "|" + std::to_string(first);
  for (const std::int64_t addend : addends) key += "," + std::to_string(addend);
  const auto [found, is_new] = kernels_.try_emplace(std::move(key));
  if (is_new) {
    found->second = ops::make_rows_of_sum(*parts.equation->op.as<ops::ScatterAdd>(), indices, result, first, addends);
  }
  return found->second.get();
}

// ---- instructions

void BoundPlan::bind(const Kernel& kernel, const Instruction& instruction, Binding to, std::vector<Command>& into) {
  KernelRequest request = request_of(plan_, kernel, to.extent);
  std::vector<Address> operands, results;
  for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
    operands.push_back(address(kernel.operands[i], to.extent,
                               !kernel.operand_reads.empty() && kernel.operand_reads[i] == RowAccess::same_rows));
  }
  for (std::size_t i = 0; i < kernel.results.size(); ++i) {
    results.push_back(
        address(kernel.results[i], to.extent, !kernel.result_has_rows.empty() && kernel.result_has_rows[i]));
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (operands[i].base == results[r].base && operands[i].offset == results[r].offset) {
        request.request.shared.emplace_back(i, r);
      }
    }
  }
  const RunKernel command{find_or_make_kernel(kernel.equation->op, request.get()), to.list.addresses.size(),
                          operands.size()};
  for (const Address& operand : operands) to.list.add(operand);
  for (const Address& result : results) to.list.add(result);
  into.push_back({&instruction, command});
}

// The kernel writes its results directly into the piece's accumulators.
void BoundPlan::bind(const RowSums& sums, const Instruction& instruction, Binding to, std::vector<Command>& into) {
  const Equation& equation = *sums.equation;
  std::vector<Type> operands = types_of(*plan_.program, equation.operands);
  const std::vector<Type> results = types_of(*plan_.program, equation.results);
  for (Type& operand : operands) operand.shape.front() = to.extent.count;
  const CpuRequest request{operands, results, 1, std::vector<bool>(operands.size(), true)};
  const RunKernel command{find_or_make_kernel(equation.op, request), to.list.addresses.size(), operands.size()};
  for (int operand : sums.operands) to.list.add(address(operand, to.extent, true));
  for (int index : sums.accumulators) to.list.add(accumulator_address(index, to.extent.piece, to.extent));
  into.push_back({&instruction, command});
}

void BoundPlan::bind(const ProductInParts& parts, const Instruction& instruction, Binding to,
                     std::vector<Command>& into) {
  const Type& whole = plan_.program->type(parts.equation->results.front());
  const Type part = type_of_part(plan_, parts, to.extent.count);
  const std::size_t size = size_of(whole.dtype);
  const std::vector<IndexRange> runs = runs_of(plan_, parts, to.extent.instance);
  Address begin = address(parts.result, to.extent);
  begin.offset += count_of(to.extent.first) * (parts.of_columns ? size : bytes_of_row(whole));
  // Rows are written where they belong. Columns are first written to the arena, because they do not lie together.
  const auto sum_runs = [&](std::span<const IndexRange> of, Address result) {
    if (!parts.of_columns) return bind_product(parts, instruction, of, result, 0, to, into);
    const Address aside{Base::arena, 0};
    bind_product(parts, instruction, of, aside, round_up(bytes(part), alignment), to, into);
    StridedCopy scatter;
    scatter.first_pointer = to.list.add(aside);
    to.list.add(result);
    scatter.bytes = scatter.from_stride = count_of(part.shape.back()) * size;
    scatter.to_stride = count_of(whole.shape.back()) * size;
    scatter.count = bytes(part) / scatter.bytes;
    into.push_back({&instruction, scatter});
  };
  if (parts.ranks == nullptr) return sum_runs(runs, begin);
  const AxisSet axes = axes_of_rows(plan_, parts);
  for (const Contribution& sum : parts.ranks->sums) {
    if (sum.owner != share_.process() || sum.result != to.extent.instance) continue;
    std::vector<IndexRange> own;
    for (const IndexRange& run : runs) {
      if (sum.has_block(share_.blocks().of_instance(run.first, axes))) own.push_back(run);
    }
    Address result = begin;
    result.offset += count_of(sum.slice) * buffer(parts.result).stride();
    sum_runs(own, result);
  }
}

void BoundPlan::bind_product(const ProductInParts& parts, const Instruction& instruction,
                             std::span<const IndexRange> runs, Address result, std::size_t sums, Binding to,
                             std::vector<Command>& into) {
  const Type type = type_of_part(plan_, parts, to.extent.count);
  const Address next{Base::arena, sums};
  const std::size_t behind = sums + round_up(bytes(type), alignment);
  const auto add_next = [&] {
    const Reduce add{parts.sum->op.data(), kernels_of(parts.sum->op).exchange, to.list.addresses.size(),
                     to.list.flat_type(type.dtype, numel(type)), 2};
    to.list.add({result, next}, result);
    into.push_back({&instruction, add});
  };
  std::vector<std::size_t> ends;  // of the blocks
  for (std::size_t end = 0; end < runs.size();) {
    ends.push_back(end += runs_of_block(plan_, parts, runs.subspan(end)));
  }
  if (ends.size() > 1) {
    const std::size_t left = ends[count_of(left_leaves(std::ssize(ends))) - 1];
    bind_product(parts, instruction, runs.first(left), result, sums, to, into);
    bind_product(parts, instruction, runs.subspan(left), next, behind, to, into);
    return add_next();
  }
  for (const IndexRange& run : runs) {
    const bool is_first = &run == runs.data();
    bind_product(parts, instruction, run, is_first ? result : next, to, into);
    if (!is_first) add_next();
  }
}

// A part of the result's rows needs the same columns of the first operand, a part of its columns those of the second;
// of a sum by index it needs all of both.
void BoundPlan::bind_product(const ProductInParts& parts, const Instruction& instruction, const IndexRange& instances,
                             Address rows, Binding to, std::vector<Command>& into) {
  const Extent& part = to.extent;
  const Type result = type_of_part(plan_, parts, part.count);
  const std::size_t cut = parts.of_columns ? 1 : 0;  // the operand whose columns decide
  const AxisSet axes = axes_of_rows(plan_, parts);
  const std::int64_t device =
      share_.own_device(instances.first, axes).value_or(plan_.program->mesh.device_at(instances.first, axes));
  std::vector<Type> operands = types_of(*plan_.program, parts.equation->operands);
  for (Type& operand : operands) operand.shape.front() *= instances.count;
  if (sums_by_index(*plan_.program, *parts.equation)) {
    const RunKernel sum{find_or_make_rows_of_sum(parts, operands.front(), result, part.first, instances),
                        to.list.addresses.size(), operands.size()};
    for (const int operand : parts.operands) to.list.add(slice_of_device(operand, device));
    to.list.add(rows);
    into.push_back({&instruction, sum});
    return;
  }
  CpuRequest request{{}, {&result, 1}, 1, {true, true}};
  request.columns = {cut, operands[cut].shape.back()};
  operands[cut].shape.back() = part.count;
  request.operands = operands;
  const RunKernel product{find_or_make_kernel(parts.equation->op, request), to.list.addresses.size(), operands.size()};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    to.list.add(slice_of_device(parts.operands[i], device));
    if (i == cut) to.list.addresses.back().offset += count_of(part.first) * size_of(operands[i].dtype);
  }
  to.list.add(rows);
  into.push_back({&instruction, product});
}

std::vector<StridedCopy> BoundPlan::strided_copies(const Copy& copy, Binding to) {
  const Buffer &from = buffer(copy.from), &into = buffer(copy.to);
  const Extent& extent = to.extent;
  const std::int64_t instances = is_stacked(plan_, into, extent) ? extent.instances() : 1;
  const std::size_t bytes =
      extent.kind == Extent::Kind::chunk ? size_of(into.dtype) * count_of(extent.count) : into.slice_bytes();
  const auto slice_of_instance = [&](int index, std::int64_t i) {
    Extent instance = extent;
    instance.first += i, instance.instance += i;
    Address slice = address(index, instance);
    if (buffer(index).pool == Pool::arena) slice.offset += count_of(i) * buffer(index).slice_bytes();
    return slice;
  };
  std::vector<StridedCopy> runs;
  std::size_t last_from = 0, last_to = 0;
  for (std::int64_t i = 0; i < instances; ++i) {
    if (slice_index(plan_, from, extent, extent.instance + i) < 0) continue;
    const Address source = slice_of_instance(copy.from, i), target = slice_of_instance(copy.to, i);
    const std::size_t from_step = source.offset - last_from, to_step = target.offset - last_to;
    const bool follows =
        !runs.empty() && source.offset >= last_from && target.offset >= last_to &&
        (runs.back().count == 1 || (from_step == runs.back().from_stride && to_step == runs.back().to_stride));
    if (follows) {
      ++runs.back().count;
      runs.back().from_stride = from_step, runs.back().to_stride = to_step;
    } else {
      runs.push_back({to.list.add(source), bytes, 1});
      to.list.add(target);
    }
    last_from = source.offset, last_to = target.offset;
  }
  return runs;
}

void BoundPlan::bind(const Copy& copy, const Instruction& instruction, Binding to, std::vector<Command>& into) {
  for (StridedCopy& runs : strided_copies(copy, to)) {
    if (copy.iteration_parts > 0) runs.per_iteration = buffer(copy.to).slice_bytes();
    into.push_back({&instruction, runs});
  }
}

std::vector<StridedCopy> BoundPlan::copies_of_slices(const Copy& slice, std::int64_t iterations, Binding to) {
  const Buffer &from = buffer(slice.from), &into = buffer(slice.to);
  const Extent& extent = to.extent;
  if (extent.rows_per_instance == 0) {
    std::vector<StridedCopy> copies = strided_copies(slice, to);
    for (StridedCopy& runs : copies) runs.per_iteration = runs.bytes;
    return copies;
  }
  std::vector<StridedCopy> all;
  const std::int64_t rows = extent.rows_per_instance, end = extent.first + extent.count;
  const std::size_t row_bytes = from.slice_bytes() / count_of(rows * iterations);
  for (std::int64_t row = extent.first; row < end;) {
    const std::int64_t within = row % rows, count = std::min(rows - within, end - row);
    const std::int64_t instances = within == 0 ? std::max<std::int64_t>(1, (end - row) / rows) : 1;
    StridedCopy& runs = all.emplace_back();
    const std::int64_t instance = slice_index(plan_, from, extent, row / rows) - first_instance(from.axes);
    const std::size_t skipped = count_of(instance) * from.slice_bytes() + count_of(within) * row_bytes;
    runs.first_pointer = to.list.add({base_of(from), from.offset + skipped});
    to.list.add({Base::arena, into.offset + count_of(row - extent.first) * row_bytes});
    runs.bytes = count_of(count) * row_bytes;
    runs.count = count_of(instances);
    runs.from_stride = from.slice_bytes();
    runs.to_stride = runs.bytes;
    runs.per_iteration = count_of(rows) * row_bytes;
    row += instances * count;
  }
  return all;
}

void BoundPlan::bind(const Loop& loop, const Instruction& instruction, Binding to, std::vector<Command>& into) {
  RunLoop command;
  command.iterations = loop.iterations;
  for (const Copy& slice : loop.slice_copies) {
    for (const StridedCopy& runs : copies_of_slices(slice, loop.iterations, to)) command.slice_copies.push_back(runs);
  }
  for (const Copy& copy : loop.carry_copies) {
    for (const StridedCopy& runs : strided_copies(copy, to)) command.carry_copies.push_back(runs);
  }
  bind(loop.body, to, command.body);
  into.push_back({&instruction, std::move(command)});
}

void BoundPlan::bind(const PackOperand& pack, const Instruction& instruction, Binding to, std::vector<Command>& into) {
  const Pack command{preparations_.at(pack.to).get(), to.list.add(address(pack.from, to.extent))};
  to.list.add(address(pack.to, to.extent));
  into.push_back({&instruction, command});
}

}  // namespace pmaptrain::cpu
