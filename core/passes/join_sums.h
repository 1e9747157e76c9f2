// Joins sums of several short values into one equation, for GPUs.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// Sums over all elements of short values of equal size become one `fused_rows` equation, if no sum is read before the
// last one is computed. Examples are the losses, the weights and the correct answers of a batch. Separate kernel
// launches would take longer than the sums themselves. Bodies of loops are processed too. No bit of a result changes.
// Runs after `fuse_rows`.
Program join_sums(Program program);

}  // namespace pmaptrain
