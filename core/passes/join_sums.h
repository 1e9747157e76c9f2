// Sums of several short values as one equation, for GPUs.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// Sums of all elements of values of one size, as of the losses, weights and correct answers of a batch, become one
// `fused_rows` equation where nothing needs one of them before the last: a launch of each would take longer than the
// sum. In the bodies of loops too. It is to come after `fuse_rows`. Changes no bit of a result.
Program join_sums(Program program);

}  // namespace pmaptrain
