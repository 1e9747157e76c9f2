// Where the rows of a program's values may be cut.
#pragma once

#include "core/analysis/rows.h"

namespace pmaptrain {

// Whether a collective adds the group's values, and whether each device keeps a part of the sum only.
inline bool is_scattered(const Op& op) { return op.rules().communication == Communication::scatter; }
inline bool is_sum(const Op& op) { return op.rules().communication == Communication::sum || is_scattered(op); }

// What a kernel on some rows reads of an operand: all of it, the same rows, or as many of its rows, which are all
// equal.
enum class Reads : std::uint8_t { whole, rows, any_rows };

// What an equation on rows reads of its operand `operand`.
Reads reads_of(const Program& program, const Facts& facts, const Rows& rows, const Equation& equation,
               std::size_t operand);

// The axes over which no piece may have rows of two positions: a piece has one instance of what its rows read whole,
// and one accumulator for what their sums become.
AxisSet axes_not_to_cross(const Program& program, const Facts& facts, const Rows& rows);

// How many neighbouring instances of what varies over `axes` have one position along `along`.
std::int64_t span_within(const Mesh& mesh, AxisSet axes, AxisSet along);

}  // namespace pmaptrain
