// Lowers reductions over logical devices: each GPU reduces the slices that it has, and sum_over_gpus() does the rest.
// If results may depend on the number of GPUs, sums between GPUs are an all_reduce, whose order of additions NCCL
// chooses.
#include <algorithm>
#include <optional>
#include <tuple>

#include "core/analysis/row_cut.h"
#include "core/base/saturate.h"
#include "core/graph/bucket.h"
#include "core/ops/all.h"
#include "core/ops/collective/collective.h"
#include "core/runtime/gpu/lowering.h"

namespace pmaptrain::gpu {
namespace {

Device::Reduction reduction_of(const Op& op) {
  const Communication kind = op.rules().communication;
  if (kind == Communication::max) return Device::Reduction::max;
  return kind == Communication::min ? Device::Reduction::min : Device::Reduction::sum;
}

// Describes places in one buffer as a grid of evenly spaced arrays; empty if they are not spaced like that.
std::optional<SpacedArrays> arrays_at(const std::vector<Location>& places) {
  const auto count = static_cast<std::int64_t>(places.size());
  const auto offset = [&](std::int64_t i) { return places[static_cast<std::size_t>(i)].offset - places[0].offset; };
  SpacedArrays arrays{count, count, count > 1 ? offset(1) : 0, 0};
  for (std::int64_t i = 0; i < count; ++i) {
    if (places[static_cast<std::size_t>(i)].offset < places[0].offset) return std::nullopt;
    if (arrays.per_row == count && offset(i) != arrays.offset(i)) {
      arrays.per_row = i;
      arrays.row_pitch = offset(i);
    }
    if (offset(i) != arrays.offset(i)) return std::nullopt;
  }
  return arrays;
}

}  // namespace

// NCCL copies multiples of 16 bytes in words of 16 bytes, and other sizes byte by byte. Each buffer has room up to the
// next multiple of `alignment`, so the padding may be sent too.
std::size_t Lowering::pitch_of(std::size_t bytes) { return round_up(bytes, alignment); }

void Lowering::reduce_places(const Equation& equation, const std::vector<Location>& from, std::vector<TreeNode> tree,
                             const Type& type, Location to, Stream stream) {
  const std::size_t bytes = pmaptrain::bytes(type);
  std::optional<SpacedArrays> arrays = arrays_at(from);
  Location first = from.front();
  if (!arrays) {
    first = {add_buffer(type, {}, Pool::transient), 0};
    buffer_at(first.buffer).slices = static_cast<std::int64_t>(from.size());
    arrays = {static_cast<std::int64_t>(from.size()), static_cast<std::int64_t>(from.size()), bytes, 0};
    for (std::size_t i = 0; i < from.size(); ++i) {
      add(Copy{&equation, {first.buffer, i * bytes}, from[i], {bytes, 1, bytes, bytes}, stream});
    }
  }
  add(Reduce{
      &equation, reduction_of(equation.op), type.dtype, {{to, first, numel(type), *arrays}}, std::move(tree), stream});
}

std::vector<Location> Lowering::addends(const Equation& equation, int operand, std::int64_t local_device,
                                        IndexRange blocks) const {
  const AxisSet over = equation.op.axes();
  const Buffer& of = plan_.buffer(operand);
  // Block and slice, and which of the devices that add the same slice.
  std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>> found;
  for (const std::int64_t member : program_.mesh.group(plan_.division.device_of(plan_.gpu, local_device), over)) {
    const std::int64_t block = blocks_.grid.position(blocks_.gpu_of(member), over);
    if (block < blocks.first || block >= blocks.first + blocks.count) continue;
    found.emplace_back(block, plan_.slice_of(of, plan_.division.local_of(member)),
                       program_.mesh.position(member, over - of.axes));
  }
  std::sort(found.begin(), found.end());
  // A sum over rows of several devices is one addend.
  if (of.span > 0) found.erase(std::unique(found.begin(), found.end()), found.end());
  std::vector<Location> places;
  places.reserve(found.size());
  for (const auto& [block, slice, copy] : found) places.push_back(place(operand, slice));
  return places;
}

bool Lowering::needs_no_reduction(const Equation& equation, int operand, AxisSet axes, IndexRange blocks) const {
  const Buffer& from = plan_.buffer(operand);
  const Buffer result{from.type, axes, 0, plan_.division.local.group_size(axes)};
  if (from.pool != Pool::transient || from.slices != result.slices) return false;
  // In a loop, the operand may be a carry, which the iteration overwrites, so its memory cannot be the result's.
  if (commands_ != &plan_.commands) return false;
  for (std::int64_t slice = 0; slice < result.slices; ++slice) {
    const std::vector<Location> places = addends(equation, operand, plan_.first_reader_of(result, slice), blocks);
    if (places.size() > 1 || places.front().offset != static_cast<std::size_t>(slice) * result.slice_bytes())
      return false;
  }
  return true;
}

int Lowering::reduce_slices(const Equation& equation, int operand, AxisSet axes, IndexRange blocks) {
  const Type type = plan_.buffer(operand).type;
  const int result = add_buffer(type, axes, Pool::transient);
  for (std::int64_t slice = 0; slice < plan_.buffer(result).slices; ++slice) {
    const std::int64_t reader = plan_.first_reader_of(plan_.buffer(result), slice);
    const std::vector<Location> places = addends(equation, operand, reader, blocks);
    const TreeNode block{std::ssize(places) / blocks.count, 1};
    reduce_places(equation, places, std::vector(static_cast<std::size_t>(blocks.count), block), type,
                  place(result, slice));
  }
  return result;
}

bool Lowering::sums_buckets(const Equation& equation) const {
  return std::any_of(equation.operands.begin(), equation.operands.end(),
                     [&](Value operand) { return packed_sums_.contains(operand.id); });
}

void Lowering::clear_padding(const Equation& equation, const std::vector<Neighbours>& memories) {
  if (!sums_buckets(equation)) return;
  for (const Neighbours& memory : memories) {
    const int buffer = memory.begin.buffer;
    const Type type = plan_.buffer(buffer).type;
    added_->push_back({all_ops().constant(type.dtype, type.shape, 0.0), {}, {}, equation.origin, {}});
    Launch clear;
    clear.equation = &added_->back();
    clear.result_types = {type};
    clear.results = {{buffer, 0}};
    commands_->insert(commands_->begin(), std::move(clear));
  }
}

std::size_t Lowering::packing_unit(DType dtype) {
  return std::max(alignment, static_cast<std::size_t>(bucket_unit) * size_of(dtype));
}

std::vector<Lowering::Neighbours> Lowering::lay_side_by_side(const Equation& equation, std::vector<int>& buffers,
                                                             std::int64_t parts) {
  const auto can_move = [&](int each) {
    return plan_.buffer(each).container < 0 && plan_.buffer(each).pool == Pool::transient;
  };
  std::map<DType, Neighbours> alike;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = plan_.buffer(buffers[i]);
    Neighbours& all = alike[buffer.type.dtype];
    all.items.push_back(i);
    all.bytes = sum_of(all.bytes, round_up(buffer.bytes(), packing_unit(buffer.type.dtype)));
  }
  std::vector<Neighbours> found;
  for (auto& [dtype, all] : alike) {
    all.dtype = dtype;
    const bool has_parts = parts > 1 && all.bytes >= options_.least_exchanged;
    if (all.items.size() == 1 && !has_parts && !sums_buckets(equation)) {
      const int alone = buffers[all.items.front()];
      all.begin = place_in_container(alone);
      all.bytes = pitch_of(plan_.buffer(alone).bytes());
      found.push_back(std::move(all));
      continue;
    }
    if (has_parts) all.bytes = round_up(all.bytes, packing_unit(dtype) * static_cast<std::size_t>(parts));
    const int memory =
        add_buffer({dtype, {static_cast<std::int64_t>(all.bytes / size_of(dtype))}, {}}, {}, Pool::transient);
    all.begin = {memory, 0};
    std::size_t offset = 0;
    for (const std::size_t i : all.items) {
      int& each = buffers[i];
      if (!can_move(each)) each = copy_aside(each, &equation);
      buffer_at(each).container = memory;
      buffer_at(each).offset = offset;
      offset += round_up(plan_.buffer(each).bytes(), packing_unit(dtype));
    }
    found.push_back(std::move(all));
  }
  return found;
}

Location Lowering::place_in_container(int buffer) const {
  const Buffer& of = plan_.buffer(buffer);
  return of.container < 0 ? Location{buffer, 0} : Location{of.container, of.offset};
}

std::vector<Lowering::Message> Lowering::messages_of(const Equation& equation, const std::vector<int>& buffers) const {
  const bool in_buckets = sums_buckets(equation);
  std::vector<Message> messages;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Location begin = place_in_container(buffers[i]);
    const Buffer& of = plan_.buffer(buffers[i]);
    // The zeros in the padding of buckets are reduced too, so that the padding of the result becomes zero.
    const std::size_t bytes = in_buckets ? round_up(of.bytes(), packing_unit(of.type.dtype)) : of.bytes();
    // Extend the most recent message in the same memory, if it does not become too long.
    auto message = std::find_if(messages.rbegin(), messages.rend(),
                                [&](const Message& known) { return known.begin.buffer == begin.buffer; });
    if (message == messages.rend() || begin.offset + bytes - message->begin.offset > options_.message_bytes) {
      messages.push_back({begin, 0, {}});
      message = messages.rbegin();
    }
    message->bytes = begin.offset + bytes - message->begin.offset;
    message->items.push_back(i);
  }
  return messages;
}

std::vector<std::vector<int>> Lowering::own_sums(const Equation& equation, const SumTree& tree,
                                                 const std::vector<Value>& operands, const std::vector<AxisSet>& axes) {
  const std::vector<IndexRange> subtrees = tree.of_gpu(plan_.division.grid.position(plan_.gpu, equation.op.axes()));
  std::vector<std::vector<int>> own(static_cast<std::size_t>(tree.slots));
  for (std::size_t slot = 0; slot < own.size(); ++slot) {
    const IndexRange blocks = subtrees[std::min(slot, subtrees.size() - 1)];
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const int operand = buffer(operands[i]);
      const bool as_it_is = tree.slots == 1 && needs_no_reduction(equation, operand, axes[i], blocks);
      own[slot].push_back(as_it_is ? operand : reduce_slices(equation, operand, axes[i], blocks));
    }
  }
  return own;
}

std::vector<int> Lowering::reduce(const Equation& equation, const std::vector<Value>& operands,
                                  const std::vector<AxisSet>& axes) {
  const AxisSet over = equation.op.axes();
  const SumTree tree = sum_tree(blocks_, plan_.division, over);
  const std::int64_t gpus = plan_.division.grid.group_size(over);
  std::vector<std::vector<int>> own = own_sums(equation, tree, operands, axes);
  const bool by_library = !options_.deterministic && reduction_of(equation.op) == Device::Reduction::sum;
  if (gpus > 1 && !by_library) return sum_over_gpus(equation, tree, axes, std::move(own));

  clear_padding(equation, lay_side_by_side(equation, own.front(), 1));
  std::vector<int> results;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    results.push_back(add_buffer(type(operands[i]), axes[i], Pool::transient));
  }
  if (gpus == 1) {
    for (std::size_t i = 0; i < operands.size(); ++i) buffer_at(results[i]).container = own.front()[i];
    return results;
  }
  const std::vector<Message> messages = messages_of(equation, own.front());
  lay_side_by_side(equation, results, 1);
  for (const Message& message : messages) {
    const int first = results[message.items.front()];
    add(Collect{&equation, Collective::all_reduce_sum, over, plan_.buffer(first).type.dtype, place_in_container(first),
                message.begin, message.bytes});
  }
  return results;
}

void Lowering::find_packed_sums() {
  packed_sums_ = packed_sums(program_, facts_);
  std::erase_if(packed_sums_, [&](const auto& entry) {
    const Type& bucket = type(Value{entry.first});
    // If there are several instances of the sum, the arrays of one instance are not neighbours in memory.
    const bool one = slice_axes(bucket.varying - entry.second.sum->op.axes()).empty();
    // In a bucket of a small element type, arrays may begin at addresses that are not aligned as buffers must be.
    const bool aligned = static_cast<std::size_t>(bucket_unit) * size_of(bucket.dtype) % alignment == 0;
    // The zeros behind the last array of a larger bucket would be in the memory of the next one.
    const bool is_smallest =
        bucket.shape[0] == offsets_in_bucket(types_of(program_, entry.second.pack->operands)).back();
    return !one || !aligned || !is_smallest;
  });
}

void Lowering::lower_reduction(const Equation& equation) {
  std::vector<Value> operands;
  std::vector<AxisSet> axes;
  for (std::size_t i = 0; i < equation.operands.size(); ++i) {
    const auto packed = packed_sums_.find(equation.operands[i].id);
    const std::vector<Value> own =
        packed != packed_sums_.end() ? packed->second.pack->operands : std::vector{equation.operands[i]};
    operands.insert(operands.end(), own.begin(), own.end());
    axes.resize(operands.size(), slice_axes(type(equation.operands[i]).varying - equation.op.axes()));
  }
  if (const PartsRead* const parts = parts_taken_of(equation)) return scatter_parts(equation, operands, *parts);
  const std::vector<int> reduced = reduce(equation, operands, axes);
  for (std::size_t i = 0, next = 0; i < equation.operands.size(); ++i) {
    const auto packed = packed_sums_.find(equation.operands[i].id);
    int whole = reduced[next];
    next += packed != packed_sums_.end() ? packed->second.pack->operands.size() : 1;
    if (packed != packed_sums_.end()) {
      const Location begin = plan_.root_of(whole);
      whole = add_buffer(type(equation.operands[i]), {}, Pool::transient);
      buffer_at(whole).container = begin.buffer;
      buffer_at(whole).offset = begin.offset;
    }
    if (!is_reduce_scatter(equation.op)) {
      set_buffer(equation.results[i], whole);
      continue;
    }
    const ops::AllSlice take{equation.op.axes(), equation.op.collective().dim};
    added_->push_back({take, equation.operands, equation.results, equation.origin, {}});
    copy_own_parts(added_->back(), whole);
  }
}

}  // namespace pmaptrain::gpu
