// Groups elementwise equations into chains that run in one pass over memory.
#pragma once

#include <cstdint>

#include "core/graph/program.h"

namespace pmaptrain {

// Elementwise equations over one number of elements and one set of axes become one `fused` equation where they are
// connected (one reads a result of another, or both read the same value); so does all arithmetic on scalars, as far as
// a chain reads no more values than a kernel takes. Constants of one value and broadcasts that a chain reads are copied
// into it, so that they are never stored. Inside the regions of loops too. Changes no bit of a result. The program must
// be simplified, so that no chain computes unused values; the result is simplified and checked.
Program fuse(Program program);

// How many visits of equations the search for dependencies and the ordering took.
struct FuseWork {
  std::int64_t searched = 0, lifted = 0;
};
Program fuse(Program program, FuseWork& work);

}  // namespace pmaptrain
