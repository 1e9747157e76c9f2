// The places where the rows of a program's values may be cut.
#pragma once

#include "core/analysis/rows.h"

namespace pmaptrain {

// Whether a collective adds the group's values and gives each device only its part of the sum.
inline bool is_scattered(const Op& op) { return op.rules().communication == Communication::scatter; }
inline bool is_sum(const Op& op) { return op.rules().communication == Communication::sum || is_scattered(op); }

// The part of an operand that a kernel reads when it runs on some rows: all of it; the same rows; or equally many rows
// from anywhere, because all rows of the operand are equal.
enum class Reads : std::uint8_t { whole, rows, any_rows };

// What an equation on rows reads of operand `operand`.
Reads reads_of(const Program& program, const Facts& facts, const Rows& rows, const Equation& equation,
               std::size_t operand);

// The axes along which no piece may contain rows of two positions. A piece has one instance of each value that its rows
// read whole, and one accumulator for each of their sums.
AxisSet axes_not_to_cross(const Program& program, const Facts& facts, const Rows& rows);

// The number of neighbouring instances, of a value that varies over `axes`, with the same position along `along`.
std::int64_t span_within(const Mesh& mesh, AxisSet axes, AxisSet along);

}  // namespace pmaptrain
