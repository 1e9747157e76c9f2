// Loop-invariant code motion.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// An equation in a loop's region that reads only values which are the same in every iteration moves before the loop,
// and its results become consts of the loop. Consts that the region no longer reads are removed. The results live as
// long as the loop, so an equation moves only in one of two cases:
//
//   - its results have at most as many bytes as those of its operands that nothing else in the loop reads;
//   - its results have at most 4096 elements, and no more than its operands.
//
// Equations that cost nothing in the loop (constants, views, and broadcasts, which fusion copies into chains) stay. An
// equation that moves gets copies of those that it reads. No bit of a result changes. The program must be simplified;
// the result is simplified and checked.
Program hoist(Program program);

}  // namespace pmaptrain
