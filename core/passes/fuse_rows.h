// Softmax and its like as one equation, for GPUs.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// Reductions over the last dimensions (sums, maxima, argmax) become one `fused_rows` equation with what is connected to
// them over the same rows: elementwise equations and chains over the elements or over the rows, one_hot, broadcasts. It
// is to come after `fuse`. Inside the regions of loops too. Changes no bit of a result, and no name and number of a
// value that remains.
Program fuse_rows(Program program);

}  // namespace pmaptrain
