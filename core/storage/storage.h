// Where the values of a program live, as far as the program itself decides it: which values share memory, and which new
// value may be computed in the memory of the value that it replaces. Backends plan memory from these facts. Whether the
// old value is still read when the new one is written depends on the order in which a backend runs the equations, so
// backends check that themselves.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/graph/program.h"

namespace pmaptrain {

// The memory of a value: that of `root`, from element `begin` on. A value that has memory of its own is its own root.
struct Home {
  Value root;
  std::int64_t begin = 0;
};

// A value that replaces another one: the new value of an input at the end of a step, or of a carry at the end of an
// iteration.
struct Replacement {
  enum class How : std::uint8_t {
    none,       // the new value is the old one
    overwrite,  // the new value may be computed in the memory of the old one, after all other reads of the old one
    copy,       // the new value is copied at the end
    // As `copy`, but the new value lives in the memory of another input or carry that is replaced at the same time. So
    // it is first copied to a temporary, before any of them is replaced.
    copy_twice,
  };
  Value from, to;  // the new value; the input, or the carry as the loop's body sees it
  How how = How::copy;
  // For `overwrite`: the equation that computes `from`, and whether it may read the old value while it writes the new
  // one. Then it reads element i of the old value only for element i of the new one: it is elementwise, or in place.
  const Equation* by = nullptr;
  bool by_element = false;
};

struct StorageFacts {
  std::vector<Home> homes;                                     // by value
  std::vector<Replacement> updates;                            // one for each input with a new value, in order
  std::map<const Equation*, std::vector<Replacement>> yields;  // by loop: one for each carry, in order
  // For each output, in order: whether the step replaces the input that the output's memory belongs to by another
  // value. Then the output is copied before the step writes anything.
  std::vector<bool> copied_first;

  Home home(Value value) const { return homes[static_cast<std::size_t>(value.id)]; }
  bool is_root(Value value) const { return home(value).root == value; }
};

// With private copies, every logical device has a slice of every value, so no array lies in a bucket's memory alone.
StorageFacts storage_of(const Program& program, bool private_copies);

}  // namespace pmaptrain
