// What can be said about the values of a program from the program alone: where they vary, which share memory, which
// collectives come before them, how long they live. Backends start from these facts, and none appears here: the CPU's
// lowering takes axes, roots, uses and stages from them and orders its instructions further; the interpreter frees a
// value after its last use.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/program.h"

namespace pmaptrain {

struct ValueFacts {
  AxisSet axes;  // over which the value has distinct instances
  // The value whose memory this one is: its own id, or that of the operand of a view. A loop's parameters that are the
  // same in every iteration are the operands.
  std::int32_t root = -1;
  // Collectives on the longest path to the value. Values of one stage can be computed without communication between.
  int stage = 0;
  // Equations are numbered from 1 in the order of the text, those of regions after the one that carries them. An input
  // is defined by 0. The last use counts views of the value and, of what a loop reads from outside, the loop's last
  // equation; outputs and updates are used by the number after the last equation.
  int defined = 0;
  int last_use = 0;
  int uses = 0;  // by equations, regions' results, outputs and updates, of this value itself
};

struct Facts {
  std::vector<ValueFacts> values;  // by value

  const ValueFacts& of(Value value) const { return values[static_cast<std::size_t>(value.id)]; }
  const ValueFacts& root_of(Value value) const { return values[static_cast<std::size_t>(of(value).root)]; }
  // Whether equation number `equation` is the last that reads the memory of `value`.
  bool dies_at(Value value, int equation) const { return root_of(value).last_use <= equation; }
};

// In time linear in the program's size.
Facts analyse(const Program& program);

// Whether a result of `equation`, whose number is `number`, may have the memory of its operand `operand`: the op is
// elementwise, the sizes agree, and nothing reads the operand afterwards. Program's inputs outlive the step, and so do
// not count.
bool may_overwrite(const Program& program, const Facts& facts, const Equation& equation, int number, Value operand,
                   Value result);

}  // namespace pmaptrain
