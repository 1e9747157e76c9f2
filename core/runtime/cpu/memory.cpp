#include "core/runtime/cpu/memory.h"

#include <sys/mman.h>

#include <cassert>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/text.h"

namespace pmaptrain::cpu {
namespace {

// Allocations of at least a page are aligned to pages, and their sizes are multiples of a page. Those of at least
// `mapped` bytes are mapped, so that the workers share the work of getting zeroed pages from the system: populate().
// Large pages are not asked for: on a machine whose memory is fragmented, the system takes longer to make them than
// they save.
constexpr std::size_t page = 4096, mapped = std::size_t{8} << 20;

std::size_t allocated_size(std::size_t bytes) {
  return bytes == most_bytes ? most_bytes : round_up(bytes, bytes < page ? alignment : page);
}

}  // namespace

Base base_of(const Buffer& buffer) {
  if (buffer.of_all_members) return Base::persistent_base;
  switch (buffer.pool) {
    case Pool::constant: return Base::constant;
    case Pool::worker: return buffer.persistent ? Base::persistent_worker : Base::worker;
    case Pool::shared: return buffer.persistent ? Base::persistent_shared : Base::shared;
    case Pool::device: return buffer.persistent ? Base::persistent_device : Base::device;
    case Pool::batch: return Base::batch;
    case Pool::packed: return Base::packed;
    case Pool::arena:
    case Pool::piece: break;
  }
  return Base::arena;
}

std::size_t MemorySizes::total() const {
  const auto of_members = [&](std::size_t bytes) {
    return allocated_size(product_of(static_cast<std::size_t>(members), bytes));
  };
  std::size_t total =
      sum_of(allocated_size(persistent.constants), allocated_size(persistent.base), of_members(persistent.shared),
             of_members(persistent.devices), product_of(persistent_copies(), of_members(persistent.worker)));
  for (std::size_t bytes : batch_bytes) total = sum_of(total, allocated_size(bytes));
  const std::size_t transient_copy = sum_of(allocated_size(transient.shared), allocated_size(transient.devices),
                                            allocated_size(accumulators), allocated_size(packed));
  const std::size_t of_worker =
      sum_of(allocated_size(transient.worker), allocated_size(transient.arena), allocated_size(scratch));
  return sum_of(total, product_of(transient_copies(), transient_copy),
                product_of(static_cast<std::size_t>(workers), of_worker));
}

Memory::Memory(const MemorySizes& sizes) : sizes_(sizes) {
  const auto of_members = [&](std::size_t bytes) {
    return allocate(product_of(static_cast<std::size_t>(sizes.members), bytes));
  };
  constants_ = allocate(sizes.persistent.constants);
  base_ = allocate(sizes.persistent.base);
  persistent_shared_ = of_members(sizes.persistent.shared);
  persistent_devices_ = of_members(sizes.persistent.devices);
  for (std::size_t i = 0; i < sizes.persistent_copies(); ++i)
    persistent_workers_.push_back(of_members(sizes.persistent.worker));
  for (std::size_t bytes : sizes.batch_bytes) batches_.push_back(allocate(bytes));
  for (std::size_t i = 0; i < sizes.transient_copies(); ++i) {
    shared_.push_back(allocate(sizes.transient.shared));
    devices_.push_back(allocate(sizes.transient.devices));
    accumulators_.push_back(allocate(sizes.accumulators));
    packed_.push_back(allocate(sizes.packed));
  }
  for (int w = 0; w < sizes.workers; ++w) {
    workers_.push_back(allocate(sizes.transient.worker));
    arenas_.push_back(allocate(sizes.transient.arena));
    scratch_.push_back(allocate(sizes.scratch));
  }
}

void FreeAllocation::operator()(std::byte* memory) const {
  if (mapped_bytes == 0) return std::free(memory);
  ::munmap(memory, mapped_bytes);
}

Memory::Allocation Memory::from_heap(std::size_t size) {
  Allocation block(static_cast<std::byte*>(std::aligned_alloc(size < page ? alignment : page, size)));
  if (block) std::memset(block.get(), 0, size);
  return block;
}

Memory::Allocation Memory::map(std::size_t size) {
  void* const begin = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) return nullptr;
  mappings_.emplace_back(static_cast<std::byte*>(begin), size);
  return Allocation(static_cast<std::byte*>(begin), {size});
}

void Memory::populate(int worker, int workers) const {
  const auto w = static_cast<std::size_t>(worker), count = static_cast<std::size_t>(workers);
  for (const std::span<std::byte> mapping : mappings_) {
    const std::size_t pages = mapping.size() / page, first = pages * w / count, end = pages * (w + 1) / count;
    std::byte* const begin = mapping.data() + first * page;
    const std::size_t size = (end - first) * page;
#ifdef MADV_POPULATE_WRITE
    if (::madvise(begin, size, MADV_POPULATE_WRITE) == 0) continue;
#endif
    // A system older than Linux 5.14. The bytes are zero and remain so.
    for (std::size_t i = 0; i < size; i += page) static_cast<volatile std::byte&>(begin[i]) = std::byte{0};
  }
}

Memory::Allocation Memory::allocate(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  const std::size_t size = allocated_size(bytes);
  Allocation block = size < mapped ? from_heap(size) : map(size);
  if (!block) fail_resource("no memory: " + human_bytes(size) + " could not be allocated");
  bytes_ += size;
  return block;
}

std::array<std::byte*, base_count> Memory::bases(int worker, std::int64_t member, std::size_t entry) const {
  const auto w = static_cast<std::size_t>(worker), m = static_cast<std::size_t>(member);
  const std::size_t copy = sizes_.worker_per_member ? 0 : w, transient = transient_copy(worker);
  std::array<std::byte*, base_count> bases{};
  const auto set = [&](Base base, std::byte* memory) { bases[static_cast<std::size_t>(base)] = memory; };
  set(Base::constant, constants_.get());
  set(Base::persistent_base, base_.get());
  set(Base::persistent_worker, persistent_workers_[copy].get() + m * sizes_.persistent.worker);
  set(Base::worker, workers_[w].get());
  set(Base::persistent_shared, persistent_shared_.get() + m * sizes_.persistent.shared);
  set(Base::shared, shared_[transient].get());
  set(Base::persistent_device, persistent_devices_.get() + m * sizes_.persistent.devices);
  set(Base::device, devices_[transient].get());
  set(Base::batch, batch(entry, 0, member));
  set(Base::arena, arenas_[w].get());
  set(Base::accumulators, accumulators(worker, 0));
  set(Base::packed, packed_[transient].get());
  return bases;
}

std::byte* Memory::batch(std::size_t entry, int slot, std::int64_t member) const {
  const bool own = sizes_.batch_by_member[entry];
  const std::int64_t at = own ? slot * sizes_.members + member : slot;
  return batches_[entry].get() + static_cast<std::size_t>(at) * sizes_.slot_bytes[entry];
}

std::byte* Memory::accumulators(int worker, int parity) const {
  return accumulators_[transient_copy(worker)].get() + static_cast<std::size_t>(parity) * sizes_.second_accumulators;
}

}  // namespace pmaptrain::cpu
