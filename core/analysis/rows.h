// Which equations of a program can run on some of the rows (dimension 0) of the devices' values, and how their results
// depend on the rest: what lets a backend cut the work of one logical device.
#pragma once

#include <cstdint>
#include <vector>

#include "core/analysis/facts.h"
#include "core/graph/program.h"

namespace pmaptrain {

enum class RowKind : std::uint8_t {
  whole,    // computed from all rows at once, or from none
  rows,     // row i from the rows i of other values, and from values that are complete
  partial,  // a sum over rows: of some rows it is an addend of that sum
  uniform,  // from complete values alone, among equations on rows: the same for any rows
};

struct Rows {
  std::int64_t count = 0;      // of one device, or of one iteration of a loop; 0: no equation is cut
  AxisSet axes;                // over which the values that are cut vary
  std::vector<RowKind> kinds;  // by value
  std::vector<bool> equal;     // by value: whether all of its rows are equal, as those of a broadcast

  RowKind of(Value value) const { return kinds[static_cast<std::size_t>(value.id)]; }
  // Whether `equation` runs on rows: one of its results is not whole.
  bool runs_on_rows(const Equation& equation) const;
  // Whether there are `count` rows of `value` on every device, cut or not.
  bool has_rows(const Program& program, const Facts& facts, Value value) const;
};

// Of the numbers of rows that there are, the one by which most work (floating operations and bytes) is cut.
Rows find_rows(const Program& program, const Facts& facts);

}  // namespace pmaptrain
