#include "core/storage/arena.h"

#include <algorithm>
#include <cassert>
#include <iterator>

#include "core/base/saturate.h"

namespace pmaptrain {

std::size_t Arena::aligned(std::size_t size) const { return round_up(std::max<std::size_t>(size, 1), alignment_); }

std::size_t Arena::allocate(std::size_t size) {
  if (end_ == most_bytes) return 0;
  size = aligned(size);
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
    if (hole->second < size) continue;
    const std::size_t offset = hole->first;
    const std::size_t rest = hole->second - size;
    holes_.erase(hole);
    if (rest > 0) holes_[offset + size] = rest;
    return offset;
  }
  // A hole at the end of the range is extended rather than skipped.
  std::size_t offset = end_;
  if (!holes_.empty() && std::prev(holes_.end())->first + std::prev(holes_.end())->second == end_) {
    offset = std::prev(holes_.end())->first;
    holes_.erase(std::prev(holes_.end()));
  }
  end_ = sum_of(offset, size);
  return offset;
}

void Arena::release(std::size_t offset, std::size_t size) {
  if (end_ == most_bytes) return;
  size = aligned(size);
  auto [hole, is_new] = holes_.emplace(offset, size);
  assert(is_new);
  const auto next = std::next(hole);
  if (next != holes_.end() && offset + size == next->first) {
    hole->second += next->second;
    holes_.erase(next);
  }
  if (hole == holes_.begin()) return;
  const auto previous = std::prev(hole);
  if (previous->first + previous->second == hole->first) {
    previous->second += hole->second;
    holes_.erase(hole);
  }
}

}  // namespace pmaptrain
