// Finds the equations of a program that can run on some rows (dimension 0) of the devices' values, and how their
// results depend on the other rows. With it a backend can cut the work of one logical device.
#pragma once

#include <cstdint>
#include <vector>

#include "core/analysis/facts.h"
#include "core/graph/program.h"

namespace pmaptrain {

enum class RowKind : std::uint8_t {
  whole,    // computed from all rows at once, or from no rows
  rows,     // row i depends only on row i of other values, and on complete values
  partial,  // a sum over rows; computed from some rows, it is an addend of that sum
  uniform,  // computed from complete values by an equation on rows, so it is equal for all rows
};

struct Rows {
  std::int64_t count = 0;      // rows of one device, or of one iteration of a loop; 0: no equation is cut
  AxisSet axes;                // the axes over which cut values vary
  std::vector<RowKind> kinds;  // by value
  std::vector<bool> equal;     // by value: whether all of its rows are equal, as in a broadcast

  RowKind of(Value value) const { return kinds[static_cast<std::size_t>(value.id)]; }
  // Whether `equation` runs on rows. This is true if any of its results is not whole.
  bool runs_on_rows(const Equation& equation) const;
  // Whether `value` has `count` rows on every device, cut or not.
  bool has_rows(const Program& program, const Facts& facts, Value value) const;
};

// Tries each number of rows in the program, and returns the one that cuts the most work (floating-point operations plus
// bytes).
Rows find_rows(const Program& program, const Facts& facts);

}  // namespace pmaptrain
