// The memory of a module: one allocation per pool.
#pragma once

#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

#include "core/runtime/cpu/plan.h"

namespace pmaptrain::cpu {

// The memory that an address is relative to. Persistent memory belongs to one entry, or to inputs that entries share;
// transient memory serves every entry.
enum class Base : std::uint8_t {
  constant,
  persistent_worker,
  worker,
  persistent_shared,
  shared,
  persistent_device,
  device,
  batch,  // relative to a slot
  arena,  // the worker's temporary memory for its current piece
  // One of two sets of accumulators. Successive steps alternate between them, so a step needs only one barrier.
  accumulators,
  packed,
};
inline constexpr std::size_t base_count = 11;

// The base that the address of a buffer is relative to.
Base base_of(const Buffer& buffer);

// The bytes of each pool of a module.
struct MemorySizes {
  PoolSizes persistent;               // sum over all entries, without the batch
  std::vector<std::size_t> batch;     // by entry: all slots
  std::vector<std::size_t> slot;      // by entry: one slot of one member
  std::vector<bool> batch_by_member;  // by entry
  PoolSizes transient;                // the maximum over entries; accumulators of all pieces, one set
  std::size_t packed = 0;             // the maximum over entries
  std::size_t scratch = 0;            // the maximum over a worker's kernels
  int workers = 1;
  std::int64_t members = 1;
  // Whether a worker runs the steps of a member alone. Then it needs its own transient memory, but only one copy of
  // values that every worker would otherwise compute for itself.
  bool by_member = false;

  std::size_t persistent_copies() const { return by_member ? 1 : static_cast<std::size_t>(workers); }
  std::size_t transient_copies() const { return by_member ? static_cast<std::size_t>(workers) : 1; }
  std::size_t total() const;
};

class Memory {
 public:
  // Throws Error (resource) if an allocation fails; the message states its size.
  explicit Memory(const MemorySizes& sizes);

  // The base addresses for a worker, a member and an entry, with accumulators of parity 0 and the batch in slot 0.
  std::array<std::byte*, base_count> bases(int worker, std::int64_t member, std::size_t entry) const;
  std::byte* batch(std::size_t entry, int slot, std::int64_t member) const;
  std::byte* accumulators(int worker, int parity) const;
  std::byte* scratch(int worker) const { return scratch_[static_cast<std::size_t>(worker)].get(); }

  std::size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  using Block = std::unique_ptr<std::byte, Free>;
  Block allocate(std::size_t bytes);

  MemorySizes sizes_;
  std::size_t bytes_ = 0;
  std::size_t transient_copy(int worker) const { return sizes_.by_member ? static_cast<std::size_t>(worker) : 0; }

  // The persistent blocks hold all members, one after another.
  Block constants_, persistent_shared_, persistent_devices_;
  std::vector<Block> batches_;                                   // by entry
  std::vector<Block> persistent_workers_;                        // one for each persistent copy, with all members
  std::vector<Block> shared_, devices_, accumulators_, packed_;  // one for each copy of the transient memory
  std::vector<Block> workers_, arenas_, scratch_;                // by worker
};

}  // namespace pmaptrain::cpu
