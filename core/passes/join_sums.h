// Joins sums of several short values into one equation, for GPUs.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// Sums of all elements, of values of equal size such as the losses, weights and correct answers of a batch, become one
// `fused_rows` equation if no sum is read before the last one. Separate launches would take longer than the sums
// themselves. Bodies of loops are processed too. No bit of a result changes. Runs after `fuse_rows`.
Program join_sums(Program program);

}  // namespace pmaptrain
