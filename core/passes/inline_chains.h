// Lets chains compute what they would load from other chains, for GPUs.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// A chain whose results only other chains and sums of columns read, all over as many elements, is computed again in
// each of them, if that takes less time than storing and loading the results. `fuse` does this too, as long as no sum
// reads the results; this pass does it where `fuse_columns` has given the sums their elements. No bit of a result
// changes. Runs after `fuse_columns`.
Program inline_chains(Program program);

}  // namespace pmaptrain
