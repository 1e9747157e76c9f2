// Replaces flags of many arrays by norms, which a GPU computes for all arrays in one launch.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// The pattern is several chains that each set flags (0 or 1) in a u8 array, and chains that use only the maximum of
// such an array. The flags become numbers of the type of the array that the chain reads, and `norms` computes their
// maximum. A plan for GPUs then joins the chains of neighbouring arrays, and their norms
// (core/runtime/gpu/join_norms.cpp), so the guard of an optimizer's update takes two launches, whatever the number of
// parameters. No bit of a result changes. Runs after `fuse`.
Program flags_as_norms(Program program);

}  // namespace pmaptrain
