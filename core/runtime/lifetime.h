// When each value of a schedule is written and read: what memory planning decides from.
#pragma once

#include <map>
#include <vector>

#include "core/runtime/schedule.h"

namespace pmaptrain {

// Who reads: a step that runs for each block, one that every worker runs, or one of which each does a range. An
// exchange also reads slices of devices that other workers carry.
enum class Reader : std::uint8_t { varying, everywhere, range, exchange };

struct Access {
  int stage = 0;
  int position = 0;
  Reader reader = Reader::varying;
};

struct Lifetime {
  int root = -1;
  Access written;            // first write
  const Step* by = nullptr;  // the step that writes; null for inputs and constants
  bool inside_loop = false;  // written inside a loop's body (or carried by it)
  std::vector<Access> reads;
  int last = 0;  // position of the last read, at least that of the write; a loop's end for what the
                 // loop reads from outside
};

struct Lifetimes {
  std::vector<Lifetime> values;    // in the order of roots
  std::vector<int> places;         // by value: where it is among those; -1 for what is no root
  std::map<const Step*, int> end;  // where a loop ends

  const Lifetime& of(int root) const {
    return values[static_cast<std::size_t>(places[static_cast<std::size_t>(root)])];
  }
};

// Positions count steps and ends of loops from 1, in order: stages one after another, invariant steps before varying
// ones, bodies inside.
Lifetimes find_lifetimes(const Schedule& schedule);

}  // namespace pmaptrain
