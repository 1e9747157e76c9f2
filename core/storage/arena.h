// A first-fit allocator of offsets in a memory range that grows on demand.
#pragma once

#include <cstddef>
#include <map>

namespace pmaptrain {

// If the size of the range would exceed most_bytes, it saturates, and the offsets are meaningless from then on.
class Arena {
 public:
  // Every offset is a multiple of `alignment`, a power of two.
  explicit Arena(std::size_t alignment) : alignment_(alignment) {}

  std::size_t allocate(std::size_t size);
  void release(std::size_t offset, std::size_t size);
  std::size_t end() const { return end_; }

 private:
  std::size_t aligned(std::size_t size) const;

  std::size_t alignment_;
  std::map<std::size_t, std::size_t> holes_;  // offset to size; no two holes are adjacent
  std::size_t end_ = 0;
};

}  // namespace pmaptrain
