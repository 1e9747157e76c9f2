#include "core/runtime/cpu/memory.h"

#include <cstdlib>
#include <cstring>

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/text.h"

namespace pmaptrain {

Memory::Memory(const Plan& plan, int workers)
    : blocks_(plan.blocks.size()),
      at_once_(static_cast<std::size_t>(plan.pools.blocks_at_once(workers, static_cast<std::int64_t>(blocks_)))),
      accumulators_size_(plan.pools.accumulators) {
  constants_ = allocate(plan.pools.constants);
  shared_ = allocate(plan.pools.shared);
  devices_ = allocate(plan.pools.devices);
  accumulators_ = allocate(product_of(2 * blocks_, accumulators_size_));
  for (int w = 0; w < workers; ++w) {
    workers_.push_back(allocate(plan.pools.worker));
    arenas_.push_back(allocate(product_of(at_once_, plan.pools.arena)));
  }
}

Memory::Pool Memory::allocate(std::size_t bytes) {
  constexpr std::size_t page = 4096;
  const std::size_t size = round_up(std::max<std::size_t>(bytes, 1), page);
  Pool pool(static_cast<std::byte*>(std::aligned_alloc(page, size)));
  if (!pool) fail_resource("no memory: " + human_bytes(static_cast<double>(size)) + " could not be allocated");
  std::memset(pool.get(), 0, size);
  bytes_ += size;
  return pool;
}

std::byte* Memory::address(const Buffer& buffer, int worker, std::int64_t device, std::int64_t device_in_block) const {
  const auto w = static_cast<std::size_t>(worker);
  switch (buffer.home) {
    case Home::constant: return constants_.get() + buffer.offset;
    case Home::worker: return workers_[w].get() + buffer.offset;
    case Home::shared: return shared_.get() + buffer.offset;
    case Home::device: return devices_.get() + buffer.offset + static_cast<std::size_t>(device) * buffer.slice_bytes();
    case Home::arena:
      return arenas_[w].get() + at_once_ * buffer.offset +
             static_cast<std::size_t>(device_in_block) * buffer.slice_bytes();
    case Home::scratch: break;
  }
  return arenas_[w].get() + at_once_ * buffer.offset;
}

std::byte* Memory::accumulator(const Accumulator& accumulator, std::size_t block, int parity) const {
  const std::size_t set = static_cast<std::size_t>(parity) * blocks_ + block;
  return accumulators_.get() + set * accumulators_size_ + accumulator.offset;
}

}  // namespace pmaptrain
