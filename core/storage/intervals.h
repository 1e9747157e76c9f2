// Allocates arrays that are needed only for a part of a step, so that those which are never needed together may share
// memory.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace pmaptrain {

// An array that is needed from position `first` to position `last`, both included. Positions count from 0.
struct Interval {
  std::size_t first = 0, last = 0;
  std::size_t bytes = 0;
};

struct Offsets {
  std::vector<std::size_t> of;  // by interval
  std::size_t end = 0;          // the size of the memory; saturates at `most_bytes`, and the offsets then mean nothing
};

// The better of two orders: that of `first`, and the larger arrays first, which is tried for at most a few hundred
// arrays. Each array gets the first range that fits. Every offset is a multiple of `alignment`, a power of two.
Offsets place(std::span<const Interval> intervals, std::size_t alignment);

}  // namespace pmaptrain
