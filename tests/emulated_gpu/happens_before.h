// Which accesses to the same bytes have an order: vector clocks over the sequences ("lanes") in which calls run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pmaptrain::emulation {

// For each lane, how many of its calls have happened before.
class Clock {
 public:
  std::uint64_t at(std::size_t lane) const { return lane < calls_.size() ? calls_[lane] : 0; }
  void set(std::size_t lane, std::uint64_t calls);
  void tick(std::size_t lane) { set(lane, at(lane) + 1); }
  void join(const Clock& other);
  bool covers(const Clock& other) const;

 private:
  std::vector<std::uint64_t> calls_;
};

// A call as later ones refer to it: the one of this number in its lane.
struct Call {
  std::size_t lane = 0;
  std::uint64_t number = 0;
  std::shared_ptr<const std::string> what;  // "'add' on stream compute of device 0"

  bool before(const Clock& clock) const { return clock.at(lane) >= number; }
};

// Of two accesses to the same bytes without an order, the earlier one.
struct Conflict {
  Call earlier;
  bool wrote = false;
  std::size_t bytes = 0;  // that both use
};

// The latest accesses to the bytes of one allocation. An access that all later ones are ordered after is dropped, so a
// step that is repeated does not add to it.
class History {
 public:
  // What an access to the bytes [begin, end) now would conflict with, by what the accessing side knows.
  std::optional<Conflict> conflict(bool writes, std::size_t begin, std::size_t end, const Clock& clock) const;
  // Precondition: there is no conflict.
  void add(bool writes, std::size_t begin, std::size_t end, const Call& call, const Clock& clock);

 private:
  struct Segment {
    std::size_t end = 0;
    std::optional<Call> write = {};
    std::vector<Call> reads = {};  // after the write
  };
  void cut(std::size_t at);

  std::map<std::size_t, Segment> segments_;  // by their beginnings
};

}  // namespace pmaptrain::emulation
