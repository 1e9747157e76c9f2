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
  Access written;            // first write
  const Step* by = nullptr;  // the step that writes; null for inputs and constants
  bool inside_loop = false;  // written inside a loop's body (or carried by it)
  std::vector<Access> reads;
  int last = -1;  // position of the last read, at least that of the write; a loop's end for what the
                  // loop reads from outside
};

struct Lifetimes {
  std::map<int, Lifetime> values;       // by root
  std::map<const Step*, int> position;  // where each step begins
  std::map<const Step*, int> end;       // where a loop ends
};

// Positions count steps in order: stages one after another, invariant steps before varying ones, bodies inside.
Lifetimes find_lifetimes(const Schedule& schedule);

}  // namespace pmaptrain
