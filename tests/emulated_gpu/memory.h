// The memory of emulated devices: who owns it, who has used it, and what has not reached the host yet.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/runtime/gpu/device.h"
#include "tests/emulated_gpu/happens_before.h"

namespace pmaptrain::emulation {

using gpu::Accesses;
using gpu::Range;

inline bool overlap(Range a, Range b) {
  return a.size > 0 && b.size > 0 && a.begin < b.begin + b.size && b.begin < a.begin + a.size;
}

// The bytes of `height` rows; one range where they lie one after another.
std::vector<Range> ranges_of_rows(const std::byte* begin, const gpu::PitchedRows& rows, std::size_t pitch);

bool any_overlap(const std::vector<Range>& a, const std::vector<Range>& b);

// Whether every byte of `range` lies in one of `others`.
bool covered(Range range, const std::vector<Range>& others);

// Without a lock of its own: its owner has one.
class Memory {
 public:
  explicit Memory(std::size_t bytes_of_device) : limit_(bytes_of_device) {}

  // 256 bytes aligned, and 0xff in every byte, so a NaN in every float. Throws Error (resource).
  // It belongs to a device as a module has opened it, and is of the device's number.
  struct Owner {
    std::size_t id = 0;
    int device = 0;
  };
  std::byte* allocate(Owner owner, std::size_t bytes);
  std::byte* pinned(Owner owner, std::size_t bytes);
  // Returns what is wrong with that: an access that the host has not waited for.
  std::string free_all_of(std::size_t id, const Clock& host);

  // Throws Error (failed) unless every range is memory of this owner, or pinned memory where that is allowed.
  void check_owner(const std::string& what, std::size_t id, const Accesses& accesses, bool pinned_allowed) const;
  bool is_pinned(const std::byte* address) const;

  // Throws Error (failed) where an earlier access has no order with one of these.
  void access(const Accesses& accesses, const Call& call, const Clock& clock);

  // A copy to pinned memory, with the bytes for each range: the host has them when it has waited, and 0xff until then.
  void send_to_host(const Call& call, const std::vector<Range>& to, std::vector<std::byte> bytes);
  // A copy from pinned memory: the host must leave that as it is until it has waited.
  void read_from_host(const Call& call, const std::vector<Range>& from);
  // Ends the transfers that the host has waited for. Throws Error (failed) where it did not leave the memory alone.
  void host_waited(const Clock& host);

 private:
  struct Block {
    std::size_t size = 0;
    Owner owner = {};
    bool pinned = false;
    std::unique_ptr<std::byte[]> storage = {};
    History history = {};
  };
  using Blocks = std::map<const std::byte*, Block>;  // by address
  struct Transfer {
    Call call;
    bool to_host = false;
    std::vector<Range> host;
    std::vector<std::byte> bytes;
  };

  std::byte* add(Owner owner, std::size_t bytes, bool pinned);
  Blocks::const_iterator find(const std::byte* address) const;
  void settle(const Transfer& transfer) const;
  void settle_overlapping(const std::vector<Range>& ranges);
  void settle_each(const std::function<bool(const Transfer&)>& has_ended);

  std::size_t limit_;
  std::map<int, std::size_t> used_;  // by device
  Blocks blocks_;
  std::list<Transfer> transfers_;  // by the order of their calls
};

}  // namespace pmaptrain::emulation
