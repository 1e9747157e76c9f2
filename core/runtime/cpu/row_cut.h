// Where the rows of a program's values may be cut.
#pragma once

#include "core/analysis/rows.h"
#include "core/runtime/cpu/instruction.h"

namespace pmaptrain::cpu {

// What an equation on rows reads of its operand `operand`.
Reads reads_of(const Program& program, const Facts& facts, const Rows& rows, const Equation& equation,
               std::size_t operand);

// The axes over which no piece may have rows of two positions: a piece has one instance of what its rows read whole,
// and one accumulator for what their sums become.
AxisSet axes_not_to_cross(const Program& program, const Facts& facts, const Rows& rows);

}  // namespace pmaptrain::cpu
