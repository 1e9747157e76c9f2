#include "core/storage/intervals.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/saturate.h"
#include "core/storage/arena.h"

namespace pmaptrain {
namespace {

Offsets place_in_order(std::span<const Interval> intervals, std::size_t alignment) {
  std::vector<std::vector<std::size_t>> born, dying;  // by position
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const auto [first, last, bytes] = intervals[i];
    if (born.size() <= last) born.resize(last + 1), dying.resize(last + 1);
    born[first].push_back(i);
    dying[last].push_back(i);
  }
  Offsets offsets;
  offsets.of.resize(intervals.size());
  Arena arena(alignment);
  for (std::size_t position = 0; position < born.size(); ++position) {
    for (const std::size_t i : born[position]) offsets.of[i] = arena.allocate(intervals[i].bytes);
    for (const std::size_t i : dying[position]) arena.release(offsets.of[i], intervals[i].bytes);
  }
  offsets.end = arena.size();
  return offsets;
}

// Takes time that grows with the square of the number of intervals.
Offsets place_larger_first(std::span<const Interval> intervals, std::size_t alignment) {
  std::vector<std::size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return intervals[a].bytes > intervals[b].bytes; });
  Offsets offsets;
  offsets.of.resize(intervals.size());
  const auto size_of = [&](std::size_t i) {
    return round_up(std::max<std::size_t>(intervals[i].bytes, 1), alignment);  // each has a place of its own
  };
  std::vector<std::size_t> placed;  // in the order of their offsets
  for (const std::size_t i : order) {
    const std::size_t bytes = size_of(i);
    std::size_t at = 0;
    for (const std::size_t other : placed) {
      if (intervals[other].last < intervals[i].first || intervals[i].last < intervals[other].first) continue;
      if (offsets.of[other] >= sum_of(at, bytes)) break;
      at = std::max(at, sum_of(offsets.of[other], size_of(other)));
    }
    offsets.of[i] = at;
    offsets.end = std::max(offsets.end, sum_of(at, bytes));
    const auto after = std::upper_bound(placed.begin(), placed.end(), at,
                                        [&](std::size_t offset, std::size_t one) { return offset < offsets.of[one]; });
    placed.insert(after, i);
  }
  return offsets;
}

}  // namespace

Offsets place(std::span<const Interval> intervals, std::size_t alignment) {
  constexpr std::size_t most_compared = 512;
  Offsets in_order = place_in_order(intervals, alignment);
  if (intervals.size() > most_compared || in_order.end == most_bytes) return in_order;
  Offsets larger_first = place_larger_first(intervals, alignment);
  return larger_first.end < in_order.end ? larger_first : in_order;
}

}  // namespace pmaptrain
