// Flags of many arrays as values whose norms a GPU takes in one launch.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// Where several chains each mark elements by 1 in a u8 array, of which only the largest is used, and by chains: the
// marks become numbers of the type of what the chain reads, and `norms` gives the largest. A plan for GPUs joins the
// chains of arrays that lie side by side, and their norms (core/runtime/gpu/join_norms.cpp). So the guard of an
// optimizer's update is two launches, whatever the number of parameters. Changes no bit of a result. It is to come
// after `fuse`.
Program flags_as_norms(Program program);

}  // namespace pmaptrain
