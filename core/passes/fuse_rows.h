// Fuses softmax and similar computations along rows into one equation, for GPUs.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// Reductions over the last dimensions (sums, maxima, argmax) become one `fused_rows` equation together with connected
// equations on the same rows: one_hot, broadcasts, and elementwise equations and chains whose values have an element
// for each element of the rows, or for each row.
// Regions of loops are fused too. No bit of a result changes, and the values that remain keep their names and numbers.
// Runs after `fuse`.
Program fuse_rows(Program program);

}  // namespace pmaptrain
