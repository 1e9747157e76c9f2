// Fuses sums over rows with the chains that compute their elements, for GPUs.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// Reductions over all leading dimensions (the statistics and the gradients of norms, gradients of biases) become one
// `fused_columns` equation with those elementwise equations whose values only they read, if this saves memory traffic.
// What a chain computes for others too is read from memory or computed again, whichever reads fewer bytes. A
// chain over the columns that reads the sums, and nothing that comes later, is computed with them. Regions of loops are
// fused too. No bit of a result changes. Runs after `fuse` and before `fuse_rows`.
Program fuse_columns(Program program);

}  // namespace pmaptrain
