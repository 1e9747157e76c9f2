// Facts about the values of a program that follow from the program alone: the axes over which they vary, which of them
// share memory, how many collectives precede them, and how long they live. Backends use these facts, but the facts name
// no backend. The CPU's lowering takes axes, roots, uses and stages from them and then orders its instructions; the
// interpreter frees a value after its last use.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/program.h"

namespace pmaptrain {

struct ValueFacts {
  AxisSet axes;  // the axes over which the value has distinct instances
  // The value whose memory this value uses: itself or, for a view or an array of a bucket, the root of its operand. A
  // loop's parameter that is the same in every iteration uses the memory of its operand.
  std::int32_t root = -1;
  // The number of collectives on the longest path to the value. Values of one stage can be computed without
  // communication between them.
  int stage = 0;
  // Equations are numbered from 1 in the order of the text; the equations of a region follow the equation that contains
  // it. Inputs are defined by 0. The last use includes uses of views of the value. A value that a loop reads from
  // outside is used until the loop's last equation; outputs and updates are used by the number after the last equation.
  int defined = 0;
  int last_use = 0;
  int uses = 0;  // counts equations, results of regions, outputs and updates; views count separately
};

struct Facts {
  std::vector<ValueFacts> values;  // by value

  const ValueFacts& of(Value value) const { return values[static_cast<std::size_t>(value.id)]; }
  const ValueFacts& root_of(Value value) const { return values[static_cast<std::size_t>(of(value).root)]; }
  // Whether equation number `equation` is the last one that reads the memory of `value`.
  bool dies_at(Value value, int equation) const { return root_of(value).last_use <= equation; }
};

// Takes time linear in the size of the program.
Facts analyse(const Program& program);

// Whether a result of `equation`, with number `number`, may use the memory of operand `operand`: the op is elementwise,
// the sizes are equal, and nothing reads the operand afterwards. Inputs of the program outlive the step, so they may
// not be overwritten.
bool may_overwrite(const Program& program, const Facts& facts, const Equation& equation, int number, Value operand,
                   Value result);

}  // namespace pmaptrain
