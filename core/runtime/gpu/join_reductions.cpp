// Joins reductions of neighbouring arrays into one reduction, for example the sums of arrays that an all_gather has
// collected from several GPUs.
#include <utility>
#include <vector>

#include "core/base/saturate.h"
#include "core/runtime/gpu/lowering.h"

namespace pmaptrain::gpu {
namespace {

bool are_alike(const SpacedArrays& a, const SpacedArrays& b) {
  return a.count == b.count && a.per_row == b.per_row && a.pitch == b.pitch && a.row_pitch == b.row_pitch;
}

// Whether the arrays begin at least `bytes` bytes apart.
bool are_apart(const SpacedArrays& arrays, std::size_t bytes) {
  return (arrays.per_row == 1 || arrays.pitch >= bytes) &&
         (arrays.per_row == arrays.count || arrays.row_pitch >= bytes);
}

// A range of bytes in a pool.
struct PoolRange {
  Pool pool;
  std::size_t begin, end;
};

PoolRange bytes_at(const Plan& plan, Location place, std::size_t bytes) {
  const Buffer& buffer = plan.buffer(place.buffer);
  return {buffer.pool, buffer.offset + place.offset, buffer.offset + place.offset + bytes};
}

bool overlap(const PoolRange& a, const PoolRange& b) { return a.pool == b.pool && a.begin < b.end && b.begin < a.end; }

// Extends `reduce` by `next` if the operands and the result of `next` begin where those of `reduce` and their padding
// end. Returns whether it did. The joined reduction also sums the padding between the operands into the padding
// between the results. In a bucket that padding must stay zero, so the padding of the operands must be zero. It is zero
// if both reductions read one buffer: an all_gather has filled this buffer with ranges of buckets.
bool try_extend(const Plan& plan, Reduce& reduce, const Reduce& next) {
  if (next.kind != reduce.kind || next.type.dtype != reduce.type.dtype || !are_alike(next.arrays, reduce.arrays))
    return false;
  const std::size_t begin = round_up(bytes(reduce.type), alignment), all = begin + bytes(next.type);
  if (next.from.buffer != reduce.from.buffer || !are_apart(reduce.arrays, all)) return false;
  const auto follows = [&](Location place, Location before) {
    const PoolRange a = bytes_at(plan, before, begin), b = bytes_at(plan, place, 0);
    return a.pool == b.pool && a.end == b.begin;
  };
  if (!follows(next.from, reduce.from) || !follows(next.to, reduce.to)) return false;
  // The result of the joined reduction must not overlap its operands. (The result of `next` may lie in memory of
  // operands of `reduce`, because the second reduction runs after the first.)
  const PoolRange to = bytes_at(plan, reduce.to, all);
  for (std::int64_t i = 0; i < reduce.arrays.count; ++i) {
    PoolRange from = bytes_at(plan, reduce.from, all);
    from.begin += reduce.arrays.offset(i);
    from.end += reduce.arrays.offset(i);
    if (overlap(from, to)) return false;
  }
  reduce.type.shape = {static_cast<std::int64_t>(all / size_of(reduce.type.dtype))};
  return true;
}

void join_in(const Plan& plan, std::vector<Command>& commands) {
  std::vector<Command> done;
  for (Command& command : commands) {
    if (Loop* const loop = std::get_if<Loop>(&command)) join_in(plan, loop->body);
    const Reduce* const next = std::get_if<Reduce>(&command);
    Reduce* const reduce = next == nullptr || done.empty() ? nullptr : std::get_if<Reduce>(&done.back());
    if (reduce == nullptr || !try_extend(plan, *reduce, *next)) done.push_back(std::move(command));
  }
  commands = std::move(done);
}

}  // namespace

void join_reductions(Plan& plan) { join_in(plan, plan.commands); }

}  // namespace pmaptrain::gpu
