// The memory of a module: one allocation per pool, and where an address lies in it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

#include "core/runtime/cpu/plan.h"

namespace pmaptrain::cpu {

// What an address is relative to. Persistent memory belongs to one entry or to inputs; transient memory serves every
// entry.
enum class Base : std::uint8_t {
  constant,
  persistent_worker,
  worker,
  persistent_shared,
  shared,
  persistent_device,
  device,
  batch,         // of a slot
  arena,         // of the worker, for the piece at hand
  accumulators,  // of one of two sets: successive steps use them in turn, so that one barrier a step suffices
  packed,
};
inline constexpr std::size_t base_count = 11;

// The base of a buffer's address.
Base base_of(const Buffer& buffer);

// Bytes of each pool of a module.
struct MemorySizes {
  PoolSizes persistent;               // of all entries, but for the batch
  std::vector<std::size_t> batch;     // by entry: all of its slots
  std::vector<std::size_t> slot;      // by entry: one of them, for one member
  std::vector<bool> batch_by_member;  // by entry
  PoolSizes transient;                // the largest need of any entry; accumulators of all pieces, one set
  std::size_t packed = 0;             // likewise
  std::size_t scratch = 0;            // of a worker's kernels
  int workers = 1;
  std::int64_t members = 1;
  // Whether a worker carries out a member's steps alone. Then it needs transient memory of its own, and no copy of what
  // every worker would compute for itself.
  bool by_member = false;

  std::size_t persistent_copies() const { return by_member ? 1 : static_cast<std::size_t>(workers); }
  std::size_t transient_copies() const { return by_member ? static_cast<std::size_t>(workers) : 1; }
  std::size_t total() const;
};

class Memory {
 public:
  // Throws Error (resource), which says what was asked for.
  explicit Memory(const MemorySizes& sizes);

  // For a worker, a member and an entry; the accumulators of parity 0, the batch in slot 0.
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

  Block constants_, persistent_shared_, persistent_devices_;  // the persistent ones: of all members, one after another
  std::vector<Block> batches_;                                // by entry
  std::vector<Block> persistent_workers_;                     // by copy, of all members
  std::vector<Block> shared_, devices_, accumulators_, packed_;  // by copy of the transient memory
  std::vector<Block> workers_, arenas_, scratch_;                // by worker
};

}  // namespace pmaptrain::cpu
