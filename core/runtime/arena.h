// Places in a range of memory that grows as it is needed.
#pragma once

#include <cstddef>
#include <map>

namespace pmaptrain {

// First fit. Once the range has no end that can be counted (most_bytes), places mean nothing any more.
class Arena {
 public:
  // Of every place: a power of two.
  explicit Arena(std::size_t alignment) : alignment_(alignment) {}

  std::size_t allocate(std::size_t size);
  void release(std::size_t offset, std::size_t size);
  std::size_t end() const { return end_; }

 private:
  std::size_t aligned(std::size_t size) const;

  std::size_t alignment_;
  std::map<std::size_t, std::size_t> holes_;  // offset to size, never adjacent
  std::size_t end_ = 0;
};

}  // namespace pmaptrain
