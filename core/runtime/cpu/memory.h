// The memory of an executor: one allocation per pool, and the address of a buffer's slice in it.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

#include "core/runtime/plan.h"

namespace pmaptrain {

class Memory {
 public:
  // Throws Error (resource), which says what was asked for.
  Memory(const Plan& plan, int workers);

  // Where `buffer` is for `worker`, at logical device `device`; `device_in_block` is its position in the block at hand
  // (for the arena).
  std::byte* address(const Buffer& buffer, int worker, std::int64_t device, std::int64_t device_in_block) const;
  // Blocks for which an arena has room: each of its buffers has one slice for every device of so many.
  std::size_t blocks_at_once() const { return at_once_; }
  std::byte* arena(int worker) const { return arenas_[static_cast<std::size_t>(worker)].get(); }
  // Two sets of accumulators are used in turn by successive steps, so that one barrier a step suffices.
  std::byte* accumulator(const Accumulator& accumulator, std::size_t block, int parity) const;

  std::size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  using Pool = std::unique_ptr<std::byte, Free>;
  Pool allocate(std::size_t bytes);

  std::size_t blocks_;
  std::size_t at_once_;
  std::size_t accumulators_size_;
  std::size_t bytes_ = 0;
  Pool constants_, shared_, devices_, accumulators_;
  std::vector<Pool> workers_, arenas_;
};

}  // namespace pmaptrain
