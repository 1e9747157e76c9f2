#include "core/storage/intervals.h"

#include "core/storage/arena.h"

namespace pmaptrain {

Offsets place(std::span<const Interval> intervals, std::size_t alignment) {
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
  offsets.end = arena.end();
  return offsets;
}

}  // namespace pmaptrain
