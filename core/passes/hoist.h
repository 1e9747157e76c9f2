// A pass that depends on particular ops, unlike those of core/graph.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// Loop-invariant code motion: an equation of a loop's region that reads only values which are the same in every
// iteration moves before the loop, and its results become consts of the loop. Consts that the region no longer reads
// are removed. The results live as long as the loop, so an equation moves only in one of two cases:
//
//   - its results have no more bytes than those of its operands that nothing else in the loop reads;
//   - its results have at most 4096 elements, and no more than its operands.
//
// What costs nothing inside (constants, views, and broadcasts, which fusion repeats) stays, and is copied for what
// moves. No bit of a result changes. The program must be simplified; the result is simplified and checked.
Program hoist(Program program);

}  // namespace pmaptrain
