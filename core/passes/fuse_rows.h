// Fuses softmax and similar computations along rows into one equation, for GPUs.
#pragma once

#include <cstdint>
#include <optional>

#include "core/graph/program.h"

namespace pmaptrain {

// Rows that a reduction over the last dimensions reduces to one element each.
struct Rows {
  std::int64_t rows = 0, length = 0;
};
// Null if the equation does not reduce rows, or rows that are too few and too long for one block of threads each.
std::optional<Rows> rows_to_fuse(const Program& program, const Equation& equation);

// Reductions over the last dimensions (sums, maxima, argmax) become one `fused_rows` equation together with connected
// equations on the same rows: one_hot, broadcasts, and elementwise equations and chains whose values have an element
// for each element of the rows, or for each row.
// Regions of loops are fused too. No bit of the interpreter's results changes; a GPU adds up exponentials of long rows
// in one pass (ops::OnlineSoftmax), so its results differ by rounding. The values that remain keep their names and
// numbers. Runs after `fuse`.
Program fuse_rows(Program program);

}  // namespace pmaptrain
