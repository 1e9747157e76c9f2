#include "tests/emulated_gpu/memory.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"

namespace pmaptrain::emulation {
namespace {

constexpr std::size_t alignment = 256;

std::size_t rounded_up(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
}

// A range that may be written, of memory that is known to be ours.
std::byte* writable(Range range) { return const_cast<std::byte*>(range.begin); }

std::vector<std::byte> bytes_in(const std::vector<Range>& ranges) {
  std::vector<std::byte> bytes;
  for (const Range range : ranges) bytes.insert(bytes.end(), range.begin, range.begin + range.size);
  return bytes;
}

[[noreturn]] void fail_without_order(const Conflict& conflict, const Call& later, bool writes) {
  fail_running("no order between " + *conflict.earlier.what +
                   (conflict.wrote ? ", which writes, and " : ", which reads, and ") + *later.what + ", which " +
                   (writes ? "writes" : "reads") + ": both use " +
                   counted(static_cast<std::int64_t>(conflict.bytes), "byte") + " of one allocation",
               "Device::order() orders two streams; Device::wait() orders a stream and the host");
}

}  // namespace

std::vector<Range> ranges_of_rows(const std::byte* begin, const gpu::PitchedRows& rows, std::size_t pitch) {
  if (rows.width == 0) return {};
  if (pitch == rows.width) return {{begin, rows.width * rows.height}};
  std::vector<Range> ranges;
  for (std::size_t row = 0; row < rows.height; ++row) ranges.push_back({begin + row * pitch, rows.width});
  return ranges;
}

bool any_overlap(const std::vector<Range>& a, const std::vector<Range>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](Range x) { return std::any_of(b.begin(), b.end(), [&](Range y) { return overlap(x, y); }); });
}

bool covered(Range range, const std::vector<Range>& others) {
  const std::byte* at = range.begin;
  const std::byte* const end = range.begin + range.size;
  for (bool further = true; further && at < end;) {
    further = false;
    for (const Range& other : others) {
      if (other.begin > at || other.begin + other.size <= at) continue;
      at = other.begin + other.size;
      further = true;
    }
  }
  return at >= end;
}

std::byte* Memory::allocate(Owner owner, std::size_t bytes) {
  const int device = owner.device;
  std::size_t& used = used_[device];
  const std::size_t rounded = rounded_up(bytes);
  if (rounded < bytes || rounded > limit_ - used) {
    fail_resource("out of memory on device " + std::to_string(device) + ": " + human_bytes(bytes) +
                  " were asked for, and " + human_bytes(limit_ - used) + " of " + human_bytes(limit_) + " are free");
  }
  used += rounded;
  return add(owner, bytes, false);
}

std::byte* Memory::pinned(Owner owner, std::size_t bytes) { return add(owner, bytes, true); }

// What lies before and after an allocation belongs to no other one, so an access beyond its end is found.
std::byte* Memory::add(Owner owner, std::size_t bytes, bool pinned) {
  Block block{bytes, owner, pinned, std::make_unique<std::byte[]>(bytes + 2 * alignment)};
  const auto address = reinterpret_cast<std::uintptr_t>(block.storage.get());
  std::byte* const begin = block.storage.get() + (alignment - address % alignment);
  std::memset(begin, 0xff, bytes);
  blocks_.emplace(begin, std::move(block));
  return begin;
}

std::string Memory::free_all_of(std::size_t id, const Clock& host) {
  std::string wrong;
  for (const auto& [begin, block] : blocks_) {
    if (block.owner.id != id) continue;
    if (!block.pinned) used_[block.owner.device] -= rounded_up(block.size);
    if (const auto used = block.history.conflict(true, 0, block.size, host)) {
      wrong = std::string(block.pinned ? "pinned memory" : "memory") + " of device " +
              std::to_string(block.owner.device) + " is freed while " + *used->earlier.what + " uses it";
    }
  }
  std::erase_if(transfers_, [&](const Transfer& transfer) {
    return std::any_of(transfer.host.begin(), transfer.host.end(),
                       [&](Range range) { return find(range.begin)->second.owner.id == id; });
  });
  std::erase_if(blocks_, [&](const auto& block) { return block.second.owner.id == id; });
  return wrong;
}

Memory::Blocks::const_iterator Memory::find(const std::byte* address) const {
  const auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return blocks_.end();
  const auto block = std::prev(after);
  return address < block->first + std::max<std::size_t>(block->second.size, 1) ? block : blocks_.end();
}

bool Memory::is_pinned(const std::byte* address) const {
  const auto block = find(address);
  return block != blocks_.end() && block->second.pinned;
}

void Memory::check_owner(const std::string& what, std::size_t id, const Accesses& accesses, bool pinned_allowed) const {
  for (const auto* const ranges : {&accesses.reads, &accesses.writes}) {
    for (const Range range : *ranges) {
      if (range.size == 0) continue;
      const auto block = find(range.begin);
      if (block == blocks_.end()) fail_running(what + " uses memory that no device has allocated");
      const auto& [begin, entry] = *block;
      if (entry.pinned && !pinned_allowed) {
        fail_running(what + " uses pinned memory of the host", "only copies may use pinned memory");
      }
      if (!entry.pinned && entry.owner.id != id) {
        fail_running(what + " uses memory of device " + std::to_string(entry.owner.device),
                     "a call may use memory of its own device only; collectives move values between devices");
      }
      const std::size_t end = static_cast<std::size_t>(range.begin - begin) + range.size;
      if (end > entry.size) {
        fail_running(what + " uses " + counted(static_cast<std::int64_t>(end - entry.size), "byte") +
                     " beyond the end of an allocation of " + std::to_string(entry.size));
      }
    }
  }
}

void Memory::access(const Accesses& accesses, const Call& call, const Clock& clock) {
  const auto each = [&](auto&& f) {
    for (const bool writes : {false, true}) {
      for (const Range range : writes ? accesses.writes : accesses.reads) {
        if (range.size == 0) continue;
        const auto block = blocks_.find(find(range.begin)->first);
        const auto begin = static_cast<std::size_t>(range.begin - block->first);
        f(block->second.history, writes, begin, begin + range.size);
      }
    }
  };
  each([&](const History& history, bool writes, std::size_t begin, std::size_t end) {
    if (const auto found = history.conflict(writes, begin, end, clock)) fail_without_order(*found, call, writes);
  });
  each([&](History& history, bool writes, std::size_t begin, std::size_t end) {
    history.add(writes, begin, end, call, clock);
  });
}

void Memory::send_to_host(const Call& call, const std::vector<Range>& to, std::vector<std::byte> bytes) {
  settle_overlapping(to);
  for (const Range range : to) std::memset(writable(range), 0xff, range.size);
  transfers_.push_back({call, true, to, std::move(bytes)});
}

void Memory::read_from_host(const Call& call, const std::vector<Range>& from) {
  settle_overlapping(from);
  transfers_.push_back({call, false, from, bytes_in(from)});
}

void Memory::host_waited(const Clock& host) {
  settle_each([&](const Transfer& transfer) { return transfer.call.before(host); });
}

void Memory::settle(const Transfer& transfer) const {
  const std::vector<std::byte> now = bytes_in(transfer.host);
  const bool alone = transfer.to_host
                         ? std::all_of(now.begin(), now.end(), [](std::byte b) { return b == std::byte{0xff}; })
                         : now == transfer.bytes;
  if (!alone) {
    fail_running("the host changed pinned memory before " + *transfer.call.what +
                     (transfer.to_host ? " had written" : " had read") + " it",
                 "Device::wait() for an event after the copy comes first");
  }
  if (!transfer.to_host) return;
  const std::byte* from = transfer.bytes.data();
  for (const Range range : transfer.host) {
    std::memcpy(writable(range), from, range.size);
    from += range.size;
  }
}

// Copies that follow another one in order find what it left.
void Memory::settle_overlapping(const std::vector<Range>& ranges) {
  settle_each([&](const Transfer& transfer) { return any_overlap(transfer.host, ranges); });
}

void Memory::settle_each(const std::function<bool(const Transfer&)>& has_ended) {
  for (auto transfer = transfers_.begin(); transfer != transfers_.end();) {
    const auto next = std::next(transfer);
    if (has_ended(*transfer)) {
      const Transfer ended = std::move(*transfer);
      transfers_.erase(transfer);
      settle(ended);
    }
    transfer = next;
  }
}

}  // namespace pmaptrain::emulation
