// Joins sums over rows with the squared differences from what is made of them, for GPUs.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// A `fused_columns` equation that reads results of another one, as the variance of a batch norm reads the mean, is
// joined with it if both read an array of the same rows, so that a GPU reads it once. Chains over the columns between
// the two go inside. Only sums of squared differences from a mean can need other sums (ops::CentredSum). Regions of
// loops are processed too. No bit of the interpreter's results changes; a GPU adds up differences from an element
// of the rows, so its results differ by rounding. Runs after `inline_chains`, and before `fuse_rows`.
Program join_columns(Program program);

}  // namespace pmaptrain
