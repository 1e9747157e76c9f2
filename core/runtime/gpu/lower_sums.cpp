// Lowers sums over GPUs whose order of additions is fixed, and maxima and minima. Each GPU has the sums of the subtrees
// of its blocks. Of a large message, every GPU gets one part from each of the others, adds up this part as the tree
// says, and an all_gather distributes the results: each GPU sends as many bytes as in an all_reduce. Of a small
// message, every GPU gets all and adds up all, because one collective takes less time than two. The reductions run on
// the stream of the collectives, so the backward pass goes on beside them.
#include <algorithm>

#include "core/analysis/row_cut.h"
#include "core/base/saturate.h"
#include "core/runtime/gpu/lowering.h"

namespace pmaptrain::gpu {
namespace {

// Where the message that begins at `begin` ends, in memory of `bytes` bytes with arrays that begin at `begins`. A
// message has at most `most` bytes, or one array. All messages but the last one consist of whole `parts`, so a message
// may leave the end of its last array to the next one.
std::size_t end_of_message(std::size_t begin, std::size_t bytes, const std::vector<std::size_t>& begins,
                           std::size_t parts, std::size_t most) {
  if (bytes - begin <= most) return bytes;
  std::size_t end = bytes;
  for (const std::size_t array : begins) {
    if (array < begin + parts) continue;
    if (array - begin <= most || end == bytes) end = begin + (array - begin) / parts * parts;
  }
  return end;
}

}  // namespace

std::vector<int> Lowering::sum_over_gpus(const Equation& equation, const SumTree& tree,
                                         const std::vector<AxisSet>& axes, std::vector<std::vector<int>> own) {
  const std::int64_t gpus = plan_.division.grid.group_size(equation.op.axes());
  std::vector<std::vector<Neighbours>> memories;  // by subtree of this GPU
  for (std::vector<int>& each : own) {
    memories.push_back(lay_side_by_side(equation, each, gpus));
    clear_padding(equation, memories.back());
  }
  std::vector<int> sums;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Type type = plan_.buffer(own.front()[i]).type;
    sums.push_back(add_buffer(type, axes[i], Pool::transient));
  }
  for (std::size_t m = 0; m < memories.front().size(); ++m) {
    const Neighbours& memory = memories.front()[m];
    const bool alone = memory.items.size() == 1 && !sums_buckets(equation) &&
                       memory.bytes == pitch_of(plan_.buffer(sums[memory.items.front()]).bytes());
    const Type type{memory.dtype, {static_cast<std::int64_t>(memory.bytes / size_of(memory.dtype))}, {}};
    const int all = alone ? sums[memory.items.front()] : add_buffer(type, {}, Pool::transient);
    std::vector<std::size_t> begins;
    for (const std::size_t i : memory.items) {
      begins.push_back(place_in_container(own.front()[i]).offset - memory.begin.offset);
      if (alone) continue;
      buffer_at(sums[i]).container = all;
      buffer_at(sums[i]).offset = begins.back();
    }
    const std::size_t unit = packing_unit(memory.dtype);
    const bool are_exchanged = memory.bytes >= options_.least_exchanged;
    const std::size_t parts = are_exchanged ? unit * static_cast<std::size_t>(gpus) : unit;
    for (std::size_t begin = 0; begin < memory.bytes;) {
      const std::size_t end = end_of_message(begin, memory.bytes, begins, parts, options_.message_bytes);
      std::vector<Location> places;
      places.reserve(memories.size());
      for (const auto& each : memories) places.push_back({each[m].begin.buffer, each[m].begin.offset + begin});
      sum_message(equation, tree, memory.dtype, places, {all, begin}, end - begin);
      begin = end;
    }
  }
  return sums;
}

void Lowering::sum_message(const Equation& equation, const SumTree& tree, DType dtype, const std::vector<Location>& own,
                           Location sum, std::size_t bytes, AxisSet read) {
  const AxisSet over = equation.op.axes();
  const Mesh& grid = plan_.division.grid;
  const auto gpus = static_cast<std::size_t>(grid.group_size(over));
  const bool exchanged = !read.empty() || bytes >= options_.least_exchanged;
  const std::size_t part = exchanged ? bytes / gpus : pitch_of(bytes);  // what this GPU gets of another one's subtree
  const auto type_of = [&](std::size_t of) {
    return Type{dtype, {static_cast<std::int64_t>(of / size_of(dtype))}, {}};
  };
  // What arrives of one subtree has the size of the sum, and is in its memory.
  Location received = sum;
  if (!exchanged || own.size() > 1 || !read.empty()) {
    received = {add_buffer(type_of(product_of(product_of(part, gpus), own.size())), {}, Pool::transient), 0};
  }
  const auto place_of = [&](std::size_t slot, std::size_t rank) {
    return Location{received.buffer, received.offset + (slot * gpus + rank) * part};
  };
  const Collective collective = exchanged ? Collective::exchange : Collective::all_gather;
  for (std::size_t slot = 0; slot < own.size(); ++slot) {
    add(Collect{&equation, collective, over, dtype, place_of(slot, 0), own[slot], part, read});
  }
  const std::vector<std::int64_t> in_order = grid.group(plan_.gpu, over);
  const std::vector<int> ranks = ranks_of(plan_.division, plan_.gpu, over, read);
  std::vector<Location> addends;
  std::vector<TreeNode> nodes;
  for (const SumTree::Subtree& each : tree.subtrees) {
    const auto rank = std::find(ranks.begin(), ranks.end(), in_order[static_cast<std::size_t>(each.gpu)]);
    addends.push_back(place_of(static_cast<std::size_t>(each.slot), static_cast<std::size_t>(rank - ranks.begin())));
    nodes.push_back({1, each.blocks.count});
  }
  // GPUs that read the same elements of the sum have added different ones.
  const AxisSet gathered = exchanged ? over - read : AxisSet();
  Location to = sum;
  to.offset += static_cast<std::size_t>(grid.position(plan_.gpu, gathered)) * part;
  reduce_places(equation, addends, nodes, type_of(exchanged ? part : bytes), to, Stream::communicate);
  if (grid.group_size(gathered) > 1) add(Collect{&equation, Collective::all_gather, gathered, dtype, sum, to, part});
}

const PartsRead* Lowering::parts_taken_of(const Equation& sum) {
  // A library scatters sums alone.
  if (sum.results.size() > 1 || (!options_.deterministic && !is_sum_over_devices(sum.op))) return nullptr;
  const auto known = is_reduce_scatter(sum.op)
                         ? parts_read_.insert_or_assign(sum.results.front().id, PartsRead{sum.op.axes(), {&sum}}).first
                         : parts_read_.find(sum.results.front().id);
  if (known == parts_read_.end()) return nullptr;
  const PartsRead& parts = known->second;
  const AxisSet over = sum.op.axes();
  if (!over.contains(parts.axes) || !scatters_parts(*parts.by.front())) return nullptr;
  // In the order of the tree, each GPU adds an equal part of the sum.
  const std::int64_t elements = numel(type(sum.operands.front()));
  return options_.deterministic && elements % plan_.division.grid.group_size(over) != 0 ? nullptr : &parts;
}

bool Lowering::scatters_parts(const Equation& equation) const {
  const AxisSet over = equation.op.axes();
  const Type &whole = type(equation.operands.front()), &part = type(equation.results.front());
  const std::int64_t gpus = plan_.division.grid.group_size(over);
  if (gpus == 1 || equation.op.collective().dim != 0 || bytes(whole) < options_.least_exchanged) return false;
  if (plan_.division.local.group_size(slice_axes(whole.varying - over)) > 1) return false;
  const Buffer own{part, slice_axes(part.varying), 0, plan_.division.local.group_size(slice_axes(part.varying))};
  const std::int64_t first = plan_.division.grid.position(plan_.gpu, over) * own.slices;
  for (std::int64_t slice = 0; slice < own.slices; ++slice) {
    if (position_in_group(equation, plan_.first_reader_of(own, slice)) != first + slice) return false;
  }
  return own.slices * gpus == program_.mesh.group_size(over);
}

void Lowering::scatter_parts(const Equation& sum, const std::vector<Value>& operands, const PartsRead& parts) {
  const AxisSet over = sum.op.axes(), along = parts.axes;
  const std::int64_t gpus = plan_.division.grid.group_size(along);
  const SumTree tree = sum_tree(blocks_, plan_.division, over);
  const Type& part = type(parts.by.front()->results.front());
  const Type& whole = type(sum.operands.front());
  const std::vector<AxisSet> axes(operands.size(), slice_axes(whole.varying - over));
  std::vector<Location> places;
  for (std::vector<int>& each : own_sums(sum, tree, operands, axes)) {
    if (!sums_buckets(sum)) {
      places.push_back(place_in_container(each.front()));
      continue;
    }
    const std::vector<Neighbours> memories = lay_side_by_side(sum, each, gpus);
    clear_padding(sum, memories);
    places.push_back(memories.front().begin);
  }
  const int result = add_buffer(part, slice_axes(part.varying), Pool::transient);
  for (const Equation* const taker : parts.by) set_buffer(taker->results.front(), result);
  const std::size_t size = bytes(whole) / static_cast<std::size_t>(gpus);
  if (options_.deterministic) return sum_message(sum, tree, part.dtype, places, {result, 0}, bytes(whole), along);
  add(Collect{&sum, Collective::reduce_scatter_sum, along, part.dtype, {result, 0}, places.front(), size});
  if (plan_.division.grid.group_size(over - along) == 1) return;
  add(Collect{&sum, Collective::all_reduce_sum, over - along, part.dtype, {result, 0}, {result, 0}, size});
}

}  // namespace pmaptrain::gpu
