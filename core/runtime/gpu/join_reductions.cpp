// Joins reductions of contiguous values into one, for example the sums of what GPUs have gathered.
#include <utility>
#include <vector>

#include "core/base/saturate.h"
#include "core/runtime/gpu/lowering.h"

namespace pmaptrain::gpu {
namespace {

bool are_alike(const Arrays& a, const Arrays& b) {
  return a.count == b.count && a.in_a_row == b.in_a_row && a.pitch == b.pitch && a.row_pitch == b.row_pitch;
}

// Whether the arrays are at least `bytes` apart.
bool are_apart(const Arrays& arrays, std::size_t bytes) {
  return (arrays.in_a_row == 1 || arrays.pitch >= bytes) &&
         (arrays.in_a_row == arrays.count || arrays.row_pitch >= bytes);
}

// A range of bytes in a pool.
struct Stretch {
  Pool pool;
  std::size_t begin, end;
};

Stretch stretch(const Plan& plan, Location place, std::size_t bytes) {
  const Buffer& buffer = plan.buffer(place.buffer);
  return {buffer.pool, buffer.offset + place.offset, buffer.offset + place.offset + bytes};
}

bool overlap(const Stretch& a, const Stretch& b) { return a.pool == b.pool && a.begin < b.end && b.begin < a.end; }

// Extends `reduce` by `next` if the operands and the result of `next` begin right after those of `reduce` and their
// padding. Returns whether it did. The padding of the operands is then added up into that of the result, which must be
// zero in a bucket. So the operands lie in one buffer: it was gathered from buckets, whose padding is zero.
bool extend(const Plan& plan, Reduce& reduce, const Reduce& next) {
  if (next.kind != reduce.kind || next.type.dtype != reduce.type.dtype || !are_alike(next.arrays, reduce.arrays))
    return false;
  const std::size_t begin = round_up(bytes(reduce.type), alignment), all = begin + bytes(next.type);
  if (next.from.buffer != reduce.from.buffer || !are_apart(reduce.arrays, all)) return false;
  const auto follows = [&](Location place, Location before) {
    const Stretch a = stretch(plan, before, begin), b = stretch(plan, place, 0);
    return a.pool == b.pool && a.end == b.begin;
  };
  if (!follows(next.from, reduce.from) || !follows(next.to, reduce.to)) return false;
  // The result of a joined reduction must not overlap its operands: separate reductions could reuse memory in turn.
  const Stretch to = stretch(plan, reduce.to, all);
  for (std::int64_t i = 0; i < reduce.arrays.count; ++i) {
    Stretch from = stretch(plan, reduce.from, all);
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
    if (reduce == nullptr || !extend(plan, *reduce, *next)) done.push_back(std::move(command));
  }
  commands = std::move(done);
}

}  // namespace

void join_reductions(Plan& plan) { join_in(plan, plan.commands); }

}  // namespace pmaptrain::gpu
