// Lowers reductions over logical devices. Slices are reduced in the order of the mesh; if they are on several GPUs, an
// all_gather collects them first. If results may depend on the number of GPUs, sums between GPUs are an all_reduce,
// whose order of additions NCCL chooses.
#include <algorithm>
#include <optional>
#include <set>

#include "core/base/saturate.h"
#include "core/graph/bucket.h"
#include "core/ops/all.h"
#include "core/runtime/gpu/lowering.h"

namespace pmaptrain::gpu {
namespace {

Device::Reduction reduction_of(const Op& op) {
  switch (op.rules().communication) {
    case Communication::max: return Device::Reduction::max;
    case Communication::min: return Device::Reduction::min;
    case Communication::sum:
    case Communication::scatter:
    case Communication::gather:
    case Communication::slice:
    case Communication::all_to_all:
    case Communication::permute:
    case Communication::none:
    case Communication::coordinate: break;
  }
  return Device::Reduction::sum;
}

// Describes places in one buffer as a grid of evenly spaced arrays; empty if they are not spaced like that.
std::optional<SpacedArrays> arrays_at(const std::vector<Location>& places) {
  const auto count = static_cast<std::int64_t>(places.size());
  const auto offset = [&](std::int64_t i) { return places[static_cast<std::size_t>(i)].offset - places[0].offset; };
  SpacedArrays arrays{count, count, count > 1 ? offset(1) : 0, 0};
  for (std::int64_t i = 0; i < count; ++i) {
    if (arrays.per_row == count && offset(i) != arrays.offset(i)) {
      arrays.per_row = i;
      arrays.row_pitch = offset(i);
    }
    if (offset(i) != arrays.offset(i)) return std::nullopt;
  }
  return arrays;
}

}  // namespace

Lowering::GatheredSlices Lowering::gather_from_gpus(const Equation& equation, int operand) {
  const AxisSet axes = equation.op.axes();
  const Buffer one = plan_.buffer(operand);
  const std::int64_t gpus = plan_.division.grid.group_size(axes);
  if (gpus == 1) return {operand, one};
  const std::size_t pitch = pitch_of(one.bytes());
  const int gathered = add_gathered_buffer(one.type.dtype, pitch, gpus);
  add(Collect{&equation, Collective::all_gather, axes, one.type.dtype, {gathered, 0}, {operand, 0}, pitch});
  return {gathered, one, gpus, 0, pitch};
}

// The distance between the parts of two GPUs in gathered memory: `bytes`, rounded up. NCCL copies multiples of 16 bytes
// in words of 16 bytes, and other sizes byte by byte. Each buffer has room up to the next multiple of `alignment`, so
// the padding may be sent too.
std::size_t Lowering::pitch_of(std::size_t bytes) { return round_up(bytes, alignment); }

int Lowering::add_gathered_buffer(DType dtype, std::size_t pitch, std::int64_t gpus) {
  const int gathered =
      add_buffer({dtype, {static_cast<std::int64_t>(pitch / size_of(dtype))}, {}}, {}, Pool::transient);
  buffer_at(gathered).slices = gpus;
  return gathered;
}

std::vector<Location> Lowering::slices_of_group(const Equation& equation, const GatheredSlices& from,
                                                std::int64_t local_device) const {
  const AxisSet axes = equation.op.axes();
  const Division& division = plan_.division;
  std::vector<Location> places;
  std::set<std::size_t> seen;
  for (const std::int64_t member : program_.mesh.group(division.device_of(plan_.gpu, local_device), axes)) {
    const int gpu = division.gpu_of(member);
    if (from.gpus == 1 && gpu != plan_.gpu) continue;  // an all_reduce adds the values of other GPUs
    const auto rank = static_cast<std::size_t>(from.gpus == 1 ? 0 : division.grid.position(gpu, axes));
    const auto slice = static_cast<std::size_t>(plan_.slice_of(from.of, division.local_of(member)));
    const std::size_t offset = from.offset + rank * from.pitch + slice * from.of.slice_bytes();
    if (from.of.span > 0 && !seen.insert(offset).second) continue;  // a sum over rows of several devices is one addend
    places.push_back({from.buffer, offset});
  }
  return places;
}

void Lowering::reduce_places(const Equation& equation, const std::vector<Location>& from, const Type& type,
                             Location to) {
  const std::size_t bytes = pmaptrain::bytes(type);
  std::optional<SpacedArrays> arrays = arrays_at(from);
  Location first = from.front();
  if (!arrays) {
    first = {add_buffer(type, {}, Pool::transient), 0};
    buffer_at(first.buffer).slices = static_cast<std::int64_t>(from.size());
    arrays = {static_cast<std::int64_t>(from.size()), static_cast<std::int64_t>(from.size()), bytes, 0};
    for (std::size_t i = 0; i < from.size(); ++i) {
      add(Copy{&equation, {first.buffer, i * bytes}, from[i], {bytes, 1, bytes, bytes}});
    }
  }
  add(Reduce{&equation, reduction_of(equation.op), to, first, type, *arrays});
}

bool Lowering::needs_no_reduction(const Equation& equation, const GatheredSlices& from, AxisSet axes) const {
  const Buffer result{from.of.type, axes, 0, plan_.division.local.group_size(axes)};
  if (from.gpus > 1 || from.of.pool != Pool::transient || from.of.slices != result.slices) return false;
  // In a loop, `from` may be a carry, which the iteration overwrites, so its memory cannot be the result's.
  if (commands_ != &plan_.commands) return false;
  for (std::int64_t slice = 0; slice < result.slices; ++slice) {
    const std::vector<Location> members = slices_of_group(equation, from, plan_.first_reader_of(result, slice));
    if (members.size() > 1 || members.front().offset != static_cast<std::size_t>(slice) * result.slice_bytes())
      return false;
  }
  return true;
}

int Lowering::reduce_slices(const Equation& equation, const GatheredSlices& from, AxisSet axes) {
  const int result = add_buffer(from.of.type, axes, Pool::transient);
  for (std::int64_t slice = 0; slice < plan_.buffer(result).slices; ++slice) {
    const std::int64_t reader = plan_.first_reader_of(plan_.buffer(result), slice);
    reduce_places(equation, slices_of_group(equation, from, reader), from.of.type, place(result, slice));
  }
  return result;
}

bool Lowering::sums_buckets(const Equation& equation) const {
  return std::any_of(equation.operands.begin(), equation.operands.end(),
                     [&](Value operand) { return packed_sums_.contains(operand.id); });
}

void Lowering::clear_before(std::size_t command, const Equation& equation, const std::vector<int>& memories) {
  for (const int memory : memories) {
    const Type type = plan_.buffer(memory).type;
    added_->push_back({all_ops().constant(type.dtype, type.shape, 0.0), {}, {}, equation.origin, {}});
    Launch clear;
    clear.equation = &added_->back();
    clear.result_types = {type};
    clear.results = {{memory, 0}};
    commands_->insert(commands_->begin() + static_cast<std::ptrdiff_t>(command), std::move(clear));
  }
}

std::size_t Lowering::packing_unit(DType dtype) {
  return std::max(alignment, static_cast<std::size_t>(bucket_unit) * size_of(dtype));
}

std::vector<int> Lowering::lay_side_by_side(const Equation& equation, std::vector<int>& buffers) {
  std::vector<int> memories;
  std::set<DType> types;
  for (const int each : buffers) types.insert(plan_.buffer(each).type.dtype);
  const bool in_buckets = sums_buckets(equation);
  for (const DType dtype : types) {
    const auto is_alike = [&](int each) { return plan_.buffer(each).type.dtype == dtype; };
    const auto can_move = [&](int each) {
      return plan_.buffer(each).container < 0 && plan_.buffer(each).pool == Pool::transient;
    };
    if (!in_buckets && std::count_if(buffers.begin(), buffers.end(), is_alike) == 1) continue;
    std::size_t bytes = 0;
    const int memory = add_buffer({dtype, {0}, {}}, {}, Pool::transient);
    for (int& each : buffers) {
      if (!is_alike(each)) continue;
      if (!can_move(each)) {
        const Buffer like = plan_.buffer(each);
        const int moved = add_buffer(like.type, like.axes, Pool::transient, like.span);
        copy(each, moved, &equation);
        each = moved;
      }
      buffer_at(each).container = memory;
      buffer_at(each).offset = bytes;
      bytes = sum_of(bytes, round_up(buffer_at(each).bytes(), packing_unit(dtype)));
    }
    buffer_at(memory).type.shape = {static_cast<std::int64_t>(bytes / size_of(dtype))};
    if (in_buckets) memories.push_back(memory);
  }
  return memories;
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

std::vector<int> Lowering::reduce(const Equation& equation, const std::vector<Value>& operands,
                                  const std::vector<AxisSet>& axes) {
  const AxisSet over = equation.op.axes();
  const std::int64_t gpus = plan_.division.grid.group_size(over);
  const bool by_library = gpus > 1 && !options_.deterministic && reduction_of(equation.op) == Device::Reduction::sum;
  const bool gathers = gpus > 1 && !by_library;
  const auto here = [&](int buffer) { return GatheredSlices{buffer, plan_.buffer(buffer)}; };

  // Reduce the slices of this GPU. If an all_gather follows, they are sent as they are.
  std::vector<int> own;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const int operand = buffer(operands[i]);
    const bool as_it_is = gathers || needs_no_reduction(equation, here(operand), axes[i]);
    own.push_back(as_it_is ? operand : reduce_slices(equation, here(operand), axes[i]));
  }
  clear_before(0, equation, lay_side_by_side(equation, own));
  std::vector<int> results;
  if (!gathers) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      results.push_back(add_buffer(type(operands[i]), axes[i], Pool::transient));
    }
  }
  if (gpus == 1) {
    for (std::size_t i = 0; i < operands.size(); ++i) buffer_at(results[i]).container = own[i];
    return results;
  }
  const std::vector<Message> messages = messages_of(equation, own);
  if (by_library) {
    lay_side_by_side(equation, results);
    for (const Message& message : messages) {
      const int first = results[message.items.front()];
      add(Collect{&equation, Collective::all_reduce_sum, over, plan_.buffer(first).type.dtype,
                  place_in_container(first), message.begin, message.bytes});
    }
    return results;
  }
  results.resize(operands.size());
  std::vector<GatheredSlices> gathered(operands.size());
  for (const Message& message : messages) {
    const DType dtype = plan_.buffer(message.begin.buffer).type.dtype;
    const std::size_t pitch = pitch_of(message.bytes);
    const int all = add_gathered_buffer(dtype, pitch, gpus);
    add(Collect{&equation, Collective::all_gather, over, dtype, {all, 0}, message.begin, pitch});
    for (const std::size_t i : message.items) {
      gathered[i] = {all, plan_.buffer(own[i]), gpus, place_in_container(own[i]).offset - message.begin.offset, pitch};
    }
  }
  const std::size_t first_reduction = commands_->size();
  for (std::size_t i = 0; i < operands.size(); ++i) results[i] = reduce_slices(equation, gathered[i], axes[i]);
  clear_before(first_reduction, equation, lay_side_by_side(equation, results));
  return results;
}

void Lowering::find_packed_sums() {
  packed_sums_ = packed_sums(program_, facts_);
  std::erase_if(packed_sums_, [&](const auto& entry) {
    const Type& sum = type(entry.second.sum);
    // If there are several instances of the bucket, the arrays of one instance are not neighbours in memory.
    const bool one = slice_axes(sum.varying).empty();
    // In a bucket of a small element type, arrays may begin at addresses that are not aligned as buffers must be.
    const bool aligned = static_cast<std::size_t>(bucket_unit) * size_of(sum.dtype) % alignment == 0;
    // The zeros behind the last array of a larger bucket would be in the memory of the next one.
    const bool is_smallest = sum.shape[0] == offsets_in_bucket(types_of(program_, entry.second.pack->operands)).back();
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
    axes.resize(operands.size(), slice_axes(type(equation.results[i]).varying));
  }
  const std::vector<int> reduced = reduce(equation, operands, axes);
  for (std::size_t i = 0, next = 0; i < equation.operands.size(); ++i) {
    const Value result = equation.results[i];
    const auto packed = packed_sums_.find(equation.operands[i].id);
    const int first = reduced[next];
    next += packed != packed_sums_.end() ? packed->second.pack->operands.size() : 1;
    if (packed == packed_sums_.end()) {
      set_buffer(result, first);
      continue;
    }
    const Location begin = plan_.root_of(first);
    const int bucket = add_buffer(type(result), {}, Pool::transient);
    buffer_at(bucket).container = begin.buffer;
    buffer_at(bucket).offset = begin.offset;
    set_buffer(result, bucket);
  }
}

}  // namespace pmaptrain::gpu
