// The memory blocks of a module.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/runtime/cpu/plan.h"

namespace pmaptrain::cpu {

// The memory block that an address is relative to. Persistent blocks contain inputs, outputs and constants. The other
// blocks are transient: all entries use them, one entry at a time.
enum class Base : std::uint8_t {
  constant,
  persistent_worker,
  worker,
  persistent_shared,
  shared,
  persistent_device,
  device,
  batch,  // the batch in one slot
  arena,  // the worker's temporary memory for its current pieces
  // Where several workers share steps that end without a barrier: one of two sets of accumulators, which successive
  // steps use in turn. So a worker may write the accumulators of the next step while others still read those of this
  // step.
  accumulators,
  packed,
  persistent_base,  // of inputs that members share
};
inline constexpr std::size_t base_count = 12;

// The memory block that contains a buffer.
Base base_of(const Buffer& buffer);

// The bytes of each pool of a module, and how many copies it has.
struct MemorySizes {
  PoolSizes persistent;                  // for one member; the sum over all entries, without batches
  std::vector<std::size_t> batch_bytes;  // by entry: the batches in all slots, of all members that have their own
  std::vector<std::size_t> slot_bytes;   // by entry: one batch
  std::vector<bool> batch_by_member;     // by entry: see Entry
  PoolSizes transient;                   // the maximum over entries
  std::size_t packed = 0;                // the maximum over entries
  std::size_t scratch = 0;               // the maximum over the kernels of all entries
  int workers = 1;
  std::int64_t members = 1;
  // Whether a step of a member is run by one worker alone, while other workers run other members. Then each worker
  // needs its own transient memory, but there is only one copy of persistent values that are otherwise stored for each
  // worker.
  bool worker_per_member = false;
  // Both sets of accumulators of one copy (see Base::accumulators), and where the second one begins.
  std::size_t accumulators = 0, second_accumulators = 0;

  // The number of copies of the pool persistent.worker.
  std::size_t persistent_copies() const { return worker_per_member ? 1 : static_cast<std::size_t>(workers); }
  // The number of copies of the transient pools that workers share, and of `packed`.
  std::size_t transient_copies() const { return worker_per_member ? static_cast<std::size_t>(workers) : 1; }
  std::size_t total() const;
};

// Frees memory of the heap, or the mapping that the memory is in.
struct FreeAllocation {
  void operator()(std::byte* memory) const;
  std::size_t mapped_bytes = 0;  // 0: it is from the heap
};

class Memory {
 public:
  // Throws Error (resource) if an allocation fails; the message states its size.
  explicit Memory(const MemorySizes& sizes);

  // The addresses of the blocks, by Base, that a worker uses for a member and an entry. Those of the batch and of the
  // accumulators are for slot 0 and parity 0.
  std::array<std::byte*, base_count> bases(int worker, std::int64_t member, std::size_t entry) const;
  std::byte* batch(std::size_t entry, int slot, std::int64_t member) const;
  std::byte* accumulators(int worker, int parity) const;  // of step number modulo 2
  std::byte* scratch(int worker) const { return scratch_[static_cast<std::size_t>(worker)].get(); }

  std::size_t bytes() const { return bytes_; }

  // Gets this worker's share of the pages of large memory from the system. A page that is read before it is written
  // would be got twice, and the second time the other threads are interrupted.
  void populate(int worker, int workers) const;

 private:
  using Allocation = std::unique_ptr<std::byte, FreeAllocation>;
  // All bytes are zero. Null if there is no memory, but for allocate(), which throws.
  static Allocation from_heap(std::size_t size);
  Allocation map(std::size_t size);
  Allocation allocate(std::size_t bytes);

  MemorySizes sizes_;
  std::size_t bytes_ = 0;
  std::vector<std::span<std::byte>> mappings_;
  std::size_t transient_copy(int worker) const {
    return sizes_.worker_per_member ? static_cast<std::size_t>(worker) : 0;
  }

  // The persistent memory of all members lies one after another. There is one copy of the constants and of the
  // base for all members.
  Allocation constants_, base_, persistent_shared_, persistent_devices_;
  std::vector<Allocation> batches_;                                   // by entry
  std::vector<Allocation> persistent_workers_;                        // one for each persistent copy, with all members
  std::vector<Allocation> shared_, devices_, accumulators_, packed_;  // one for each copy of the transient memory
  std::vector<Allocation> workers_, arenas_, scratch_;                // by worker
};

}  // namespace pmaptrain::cpu
