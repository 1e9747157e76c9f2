// Splits chains so that reductions of rows can be fused with what comes after them, for GPUs.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// If a chain reads the result of a reduction over the last dimensions, those of its equations that depend on inputs
// alone become a chain of their own. For example, the loss of sequences multiplies the sums of rows by weights: without
// the split, the gradient seems to need all sums where it needs the weights alone, and fuse_rows cannot fuse it with
// the softmax. No bit of a result changes. Runs after `fuse` and before `fuse_rows`.
Program split_early(Program program);

}  // namespace pmaptrain
