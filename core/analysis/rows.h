// Finds the equations of a program that can run on a range of rows (indices of dimension 0), and how their results
// depend on rows. Backends use this to cut work into pieces, even the work of a single logical device.
#pragma once

#include <cstdint>
#include <vector>

#include "core/analysis/facts.h"
#include "core/graph/program.h"

namespace pmaptrain {

// How a value is computed when equations run on ranges of rows. A value is *complete* if it is computed before
// the first range.
enum class RowKind : std::uint8_t {
  whole,    // at once: from all rows, or from values without rows
  rows,     // range by range: row i depends only on row i of other values, and on complete values
  partial,  // a sum over rows: each range of rows gives one addend of the sum
  uniform,  // inside a loop or chain that runs on rows, from complete values alone: the same for every range
};

// The facts of find_row_facts() for one number of rows. The rows are those of examples. A value may vary over more axes
// than the examples do: of an activation that is divided over `model`, each device has a part of each row.
struct RowFacts {
  std::int64_t count = 0;            // rows of one device, or of one iteration of a loop; 0: no equation runs on rows
  AxisSet axes;                      // the axes over which the examples vary: those of the batch
  std::vector<RowKind> kinds;        // by value
  std::vector<bool> all_rows_equal;  // by value: whether its rows equal each other, as in a broadcast

  RowKind of(Value value) const { return kinds[static_cast<std::size_t>(value.id)]; }
  // Whether `equation` can run on a range of rows. This is true if any of its results is not whole.
  bool runs_on_rows(const Equation& equation) const;
  // Whether a value of this type can have a row for each example of a device.
  bool is_cut_shape(const Type& type) const {
    return type.varying.contains(axes) && !type.shape.empty() && type.shape.front() == count;
  }
  // Whether `value` has `count` rows on each device: a value of kind `rows`, or a complete value of such a shape.
  bool has_rows(const Program& program, const Facts& facts, Value value) const;
  // The sets of axes over which the results of equations on rows vary, in the order of the program. A result of an
  // equation that runs on rows varies over the axes of the first one.
  std::vector<AxisSet> axis_sets(const Program& program) const;
  // Makes whole what equations on rows compute over these axes.
  void forget(const Program& program, AxisSet varying);
};

// Whether the examples of devices differ. They do not if there are batch inputs, but none of these varies, as on a mesh
// of which no axis divides the batch.
bool examples_vary(const Program& program);

// Tries each number of rows that a batch input or a slice of a loop has, with the axes over which it varies; no axes
// only if the examples do not vary. Returns the facts for the number with the most work (floating-point operations plus
// bytes) in equations that run on rows.
RowFacts find_row_facts(const Program& program, const Facts& facts);

}  // namespace pmaptrain
