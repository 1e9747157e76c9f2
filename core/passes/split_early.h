// Splits chains so that reductions of rows can be fused with what comes after them, for GPUs.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// If a chain reads the result of a reduction over the last dimensions, those of its equations that are elementwise
// functions of inputs become a chain of their own. For example, the loss of sequences multiplies sums of rows by
// weights. Without the split, the gradient would need these sums although it reads the weights alone, and fuse_rows
// could not fuse it with the softmax. No bit of a result changes. Runs after `fuse` and before `fuse_rows`.
Program split_early(Program program);

}  // namespace pmaptrain
