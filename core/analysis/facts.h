// Facts about the values of a program: the axes over which each value varies, which values share memory, how many
// collectives precede a value, and how long it is needed. They depend on the program alone, so every backend can use
// them. For example, the interpreter frees a value after its last use.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/program.h"

namespace pmaptrain {

struct ValueFacts {
  // The axis set of the value's type. The result of a `pvary` has more axes than its root, whose memory it uses.
  AxisSet axes;
  // The id of the value whose memory this value uses: its own or, for a view or an array that `unpack` takes from a
  // bucket, the root of the operand. A `const` parameter of a loop has the root of the loop's operand.
  std::int32_t root = -1;
  // The largest number of collectives on a path from an input to the value: 0 if no collective precedes it. Values of
  // equal depth can be computed without communication between them.
  int collective_depth = 0;
  // Equations are numbered from 1 in the order of the text. The equations in a loop's region follow the loop; those in
  // other regions have the number of the equation with the region. `defined_at` is the number of the equation that
  // gives the value, or 0 for an input of the program.
  int defined_at = 0;
  // The number of the last equation that reads the memory of this value, be it through a view. Only a root has this
  // number (root_of). A value that a loop reads from outside is needed until the loop's last equation. Outputs and
  // updates are read by the number after the last equation.
  int last_use = 0;
  int uses = 0;  // by equations, results of regions, outputs and updates; uses of a view count for the view alone
};

struct Facts {
  std::vector<ValueFacts> values;  // by value

  const ValueFacts& of(Value value) const { return values[static_cast<std::size_t>(value.id)]; }
  const ValueFacts& root_of(Value value) const { return values[static_cast<std::size_t>(of(value).root)]; }
};

// Takes time linear in the size of the program.
Facts analyse(const Program& program);

}  // namespace pmaptrain
