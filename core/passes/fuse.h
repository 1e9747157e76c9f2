// Groups elementwise equations into chains that run in one pass over memory.
#pragma once

#include <cstdint>

#include "core/graph/program.h"

namespace pmaptrain {

// Elementwise equations over one number of elements and one set of axes become one `fused` equation where they are
// connected (one reads what another gives, or both read the same value), and all arithmetic on scalars does. Constants
// and broadcasts that a chain reads go inside, so that they are never stored. Inside the regions of loops too. Changes
// no bit of a result. Of a simplified program, so that no chain computes what nobody needs; it comes out simplified and
// checked.
Program fuse(Program program);

// How often that looks at an equation to see what it needs, and to order it.
struct FuseWork {
  std::int64_t searched = 0, lifted = 0;
};
Program fuse(Program program, FuseWork& work);

}  // namespace pmaptrain
