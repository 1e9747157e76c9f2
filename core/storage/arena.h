// A first-fit allocator that plans memory: it gives out offsets in a range that grows on demand, and allocates nothing.
#pragma once

#include <cstddef>
#include <map>

namespace pmaptrain {

// If the size of the range would exceed most_bytes, it stays most_bytes, and all further offsets are meaningless.
class Arena {
 public:
  // Every offset is a multiple of `alignment`, a power of two.
  explicit Arena(std::size_t alignment) : alignment_(alignment) {}

  std::size_t allocate(std::size_t size);
  // Frees what allocate(size) has given at this offset.
  void release(std::size_t offset, std::size_t size);
  // The size of the range, which has room for all that has been allocated so far.
  std::size_t size() const { return end_; }

 private:
  std::size_t aligned(std::size_t size) const;

  std::size_t alignment_;
  std::map<std::size_t, std::size_t> holes_;  // offset to size; no two holes are adjacent
  std::size_t end_ = 0;
};

}  // namespace pmaptrain
